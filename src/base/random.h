// Random numbers. Sampling uses the counter-based generator, keyed by what is being drawn, so that
// a draw depends on (seed, choice, position, draw) and on nothing that happened before.
#pragma once

#include <cstdint>
#include <random>

namespace headrace {

/// Where fresh seeds come from, as an interface, so that a simulation can replay.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual uint64_t next_u64() = 0;
};

/// Seeds from the operating system.
class SystemRandom final : public RandomSource {
 public:
  uint64_t next_u64() override { return (static_cast<uint64_t>(device_()) << 32) | device_(); }

 private:
  std::random_device device_;
};

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that mixes 64 bits.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// 64 random bits for one draw, a pure function of its key.
constexpr uint64_t counter_random(uint64_t seed, uint64_t choice, uint64_t position,
                                  uint64_t draw) {
  return mix64(mix64(mix64(mix64(seed) ^ choice) ^ position) ^ draw);
}

/// The upper 53 bits as a double in [0, 1).
constexpr double to_unit_interval(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace headrace
