// Made-up weights and activations for the backend's tests, and the plain double-precision answers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels/kernel_table.h"
#include "base/checked.h"
#include "base/random.h"
#include "tensor/half.h"

namespace headrace::backend_test {

/// A stream of numbers that is the same on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : seed_(seed) {}
  uint64_t bits() { return counter_random(seed_, 0, 0, next_++); }
  /// In [-1, 1).
  float unit() { return static_cast<float>(2.0 * to_unit_interval(bits()) - 1.0); }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

inline Buffer random_rows(int64_t rows, int64_t cols, uint64_t seed, float size = 1.0F) {
  Buffer buffer(DType::f32, rows, cols);
  Numbers numbers(seed);
  for (int64_t i = 0; i < rows * cols; ++i) buffer.view().f32()[i] = size * numbers.unit();
  return buffer;
}

/// Rows with blocks of 32 columns that are far larger than the others, in places that differ from
/// row to row: quantised, some blocks of some rows have a low plane.
inline Buffer uneven_rows(int64_t rows, int64_t cols, uint64_t seed, float size = 1.0F) {
  Buffer buffer = random_rows(rows, cols, seed, size);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < cols; ++k) {
      if ((k / 32 + r) % 5 == 0) buffer.view().f32(r)[k] *= 8.0F;
    }
  }
  return buffer;
}

inline std::vector<float> to_vector(const Tensor& x) {
  std::vector<float> out;
  for (int64_t r = 0; r < x.rows; ++r) out.insert(out.end(), x.f32(r), x.f32(r) + x.cols);
  return out;
}

/// Equal in every bit.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Positions in a block at which a binary16 number stands.
inline std::vector<size_t> half_offsets(Format format) {
  switch (format) {
    case Format::q4_0:
    case Format::q5_0:
    case Format::q8_0:
    case Format::iq4_nl:
    case Format::iq4_xs:
      return {0};
    case Format::q4_1:
    case Format::q5_1:
    case Format::q4_k:
    case Format::q5_k:
      return {0, 2};
    case Format::q2_k:
      return {80, 82};
    case Format::q3_k:
      return {108};
    case Format::q6_k:
      return {208};
    default:
      return {};
  }
}

/// What the codes of made-up blocks are.
enum class Codes { random, all_zeros, all_ones, only_top_bits };

/// Blocks with scales of a size that real models have.
inline std::vector<std::byte> made_up_blocks(Format format, int64_t rows, int64_t cols,
                                             uint64_t seed, Codes codes = Codes::random) {
  const FormatTraits& traits = format_traits(format);
  const auto row_bytes = *format_row_bytes(format, static_cast<uint64_t>(cols));
  std::vector<std::byte> data(row_bytes * static_cast<uint64_t>(rows));
  Numbers numbers(seed);
  if (format == Format::f32 || format == Format::f16 || format == Format::bf16) {
    for (size_t i = 0; i < data.size() / traits.block_bytes; ++i) {
      const float value = codes == Codes::random ? 0.1F * numbers.unit() : 0.1F;
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      if (format == Format::f16) bits = f32_to_f16(value);
      if (format == Format::bf16) bits = f32_to_bf16(value);
      std::memcpy(data.data() + i * traits.block_bytes, &bits, traits.block_bytes);
    }
    return data;
  }
  for (auto& byte : data) {
    byte = codes == Codes::random          ? static_cast<std::byte>(numbers.bits() & 0xff)
           : codes == Codes::all_ones      ? std::byte{0xff}
           : codes == Codes::only_top_bits ? std::byte{0x80}
                                           : std::byte{0};
  }
  for (size_t block = 0; block < data.size(); block += traits.block_bytes) {
    for (const size_t offset : half_offsets(format)) {
      const uint16_t half = f32_to_f16(0.01F * (1.5F + numbers.unit()));
      std::memcpy(data.data() + block + offset, &half, 2);
    }
    if (format == Format::mxfp4) data[block] = static_cast<std::byte>(118 + numbers.below(6));
  }
  return data;
}

/// [rows, cols] as the reference decode gives them.
inline std::vector<float> decode_all(Format format, std::span<const std::byte> data) {
  const FormatTraits& traits = format_traits(format);
  const size_t num_blocks = data.size() / traits.block_bytes;
  std::vector<float> out(num_blocks * traits.block_elements);
  traits.decode(data.data(), out.data(), num_blocks);
  return out;
}

/// What activations as integers may change of the product of rows x and w: half a step of each.
/// Steps, and when a block counts as zeros: QuantizedRows, docs/decisions/activation-precision.md.
inline double activation_rounding(bool wide_steps, const float* x, const float* w, int64_t cols) {
  struct Block {
    std::array<double, 8> largest = {};  ///< of each 4 columns
    double weights = 0;
  };
  std::vector<Block> blocks(static_cast<size_t>(ceil_div(cols, 32)));
  for (int64_t k = 0; k < cols; ++k) {
    Block& block = blocks[static_cast<size_t>(k / 32)];
    double& largest = block.largest[static_cast<size_t>(k % 32 / 4)];
    largest = std::max(largest, std::abs(double{x[k]}));
    block.weights += std::abs(double{w[k]});
  }
  double mean = 0;
  for (Block& block : blocks) {
    std::sort(block.largest.begin(), block.largest.end(), std::greater<>());
    mean += block.largest[0] / static_cast<double>(blocks.size());
  }
  double rounding = 0;
  for (const Block& block : blocks) {
    const double largest = block.largest[0];
    // The bounds themselves are in doubt by float rounding.
    double step = largest / (largest > 0.9001 * mean ? 127 * 128 : 127);
    if (wide_steps) step = std::max(largest / (127 * 128), block.largest[kWideSteps] / 127);
    if (largest <= 1.0001e-20) step = 2 * largest;
    rounding += 0.5 * step * block.weights;
  }
  return rounding;
}

inline std::array<Activation, 5> all_activations() {
  return {Activation::silu, Activation::gelu_tanh, Activation::gelu, Activation::quick_gelu,
          Activation::relu};
}

inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::quick_gelu:
      return x / (1.0 + std::exp(-1.702 * x));
    case Activation::relu:
      return std::max(x, 0.0);
  }
  return x;
}

inline std::unique_ptr<Backend> backend_of(Isa isa, int num_threads = 2) {
  return make_cpu_backend({isa, num_threads});
}

}  // namespace headrace::backend_test
