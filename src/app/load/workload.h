// What a load consists of: conversations of random tokens, and when each begins. A function of its
// settings and seed alone. Must not know engines or clocks.
#pragma once

#include <cstdint>
#include <vector>

#include "app/load/length.h"
#include "headrace/token.h"

namespace headrace {

struct LoadSpec {
  LoadLength input;           ///< new tokens of each prompt, after prefix and former turns
  LoadLength output;          ///< tokens of each answer
  int64_t prefix_tokens = 0;  ///< that each conversation begins with
  int64_t num_prefixes = 1;   ///< of which there are so many
  int64_t num_turns = 1;      ///< requests of a conversation
  uint64_t seed = 1;

  /// Tokens of a conversation with its last answer, at the most.
  int64_t longest() const;
  /// Tokens of a prompt, averaged over all turns.
  double mean_prompt() const;
};

/// One request of a conversation: what is new in its prompt, and how much is to be generated.
struct LoadTurn {
  std::vector<TokenId> tokens;
  int64_t num_output = 1;
};

class LoadWorkload {
 public:
  /// `vocabulary`: the tokens to draw from; not empty.
  LoadWorkload(const LoadSpec& spec, std::vector<TokenId> vocabulary);

  const LoadSpec& spec() const { return spec_; }

  /// The prefix belongs to the first turn. From index kWarmUp on nothing is shared with what comes
  /// before it, prefixes included.
  std::vector<LoadTurn> conversation(int64_t index) const;
  static constexpr int64_t kWarmUp = int64_t{1} << 40;

  /// From the arrival of the conversation before it to its own, in units of the mean (a Poisson
  /// process); the first comes at once.
  double gap(int64_t index) const;

  /// Of a request's sampling.
  uint64_t sampling_seed(int64_t index, int64_t turn) const;

 private:
  void add_tokens(std::vector<TokenId>& out, int64_t count, LoadRandom random) const;

  const LoadSpec spec_;
  const std::vector<TokenId> vocabulary_;
};

/// Of turns, for telling workloads apart: depends on every token and length.
uint64_t load_fingerprint(const std::vector<LoadTurn>& turns);

/// A hash of tokens that goes on from `before`.
uint64_t hash_tokens(uint64_t before, const std::vector<TokenId>& tokens);

}  // namespace headrace
