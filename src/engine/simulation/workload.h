// What arrives in the simulation: requests of all kinds, drawn from a seed or from given bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "headrace/request.h"

namespace headrace {

/// Tokens of the simulated vocabulary.
constexpr int64_t kSimulatedVocab = 1000;
constexpr TokenId kSimulatedEnd = 7;
constexpr TokenId kPoison = 998;    ///< a step with it fails
constexpr TokenId kSpoiled = 999;   ///< logits after it are no numbers
constexpr TokenId kOrdinary = 990;  ///< tokens of prompts are smaller

/// Draws: from `bytes` as long as they last (for fuzzing), then from the seed.
class SimulatedChance {
 public:
  SimulatedChance(uint64_t seed, std::span<const uint8_t> bytes) : random_(seed), bytes_(bytes) {}
  /// From 0 to n - 1.
  int64_t below(int64_t n);
  std::vector<TokenId> tokens(int64_t count);

 private:
  std::mt19937_64 random_;
  std::span<const uint8_t> bytes_;
};

class Workload {
 public:
  /// `max_context`: of the engine, in tokens. `with_faults`: also requests that nobody can serve.
  Workload(SimulatedChance& chance, int64_t max_context, bool with_faults);
  Request next_request();
  /// What was said and answered, for others to go on with.
  void remember(std::vector<TokenId> tokens);
  bool has_conversations() const { return !conversations_.empty(); }
  const std::vector<TokenId>& some_conversation();

 private:
  std::vector<TokenId> some_beginning();
  std::vector<TokenId> some_prompt();

  SimulatedChance& chance_;
  const int64_t max_context_;
  const bool with_faults_;
  std::vector<TokenId> prefixes_[4];
  std::vector<std::vector<TokenId>> conversations_;
};

}  // namespace headrace
