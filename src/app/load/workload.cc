// See workload.h.
#include "app/load/workload.h"

#include <utility>

#include "base/check.h"

namespace headrace {
namespace {

/// Draws of a conversation's turns, and those of prefixes, which lie past all of them.
constexpr int64_t kMaxTurns = 1 << 12;
constexpr uint64_t kPrefixes = uint64_t{1} << 60;

uint64_t turn_index(int64_t index, int64_t turn) {
  return static_cast<uint64_t>(index * kMaxTurns + turn);
}

}  // namespace

int64_t LoadSpec::longest() const {
  return prefix_tokens + num_turns * (input.longest() + output.longest());
}

double LoadSpec::mean_prompt() const {
  const double earlier = 0.5 * static_cast<double>(num_turns - 1);
  return static_cast<double>(prefix_tokens) + input.mean() +
         earlier * (input.mean() + output.mean());
}

LoadWorkload::LoadWorkload(const LoadSpec& spec, std::vector<TokenId> vocabulary)
    : spec_(spec), vocabulary_(std::move(vocabulary)) {
  HEADRACE_CHECK(!vocabulary_.empty());
  HEADRACE_CHECK(spec_.num_turns >= 1 && spec_.num_turns < kMaxTurns);
  HEADRACE_CHECK(spec_.num_prefixes >= 1);
}

void LoadWorkload::add_tokens(std::vector<TokenId>& out, int64_t count, LoadRandom random) const {
  for (int64_t i = 0; i < count; ++i) out.push_back(vocabulary_[random.below(vocabulary_.size())]);
}

std::vector<LoadTurn> LoadWorkload::conversation(int64_t index) const {
  std::vector<LoadTurn> turns;
  for (int64_t turn = 0; turn < spec_.num_turns; ++turn) {
    const uint64_t at = turn_index(index, turn);
    LoadRandom input(spec_.seed, LoadPurpose::input_length, at);
    LoadRandom output(spec_.seed, LoadPurpose::output_length, at);
    LoadTurn made;
    if (turn == 0 && spec_.prefix_tokens > 0) {
      LoadRandom choice(spec_.seed, LoadPurpose::prefix, static_cast<uint64_t>(index));
      uint64_t prefix = kPrefixes + choice.below(static_cast<uint64_t>(spec_.num_prefixes));
      if (index >= kWarmUp) prefix += kPrefixes;
      add_tokens(made.tokens, spec_.prefix_tokens, {spec_.seed, LoadPurpose::tokens, prefix});
    }
    add_tokens(made.tokens, spec_.input.draw(input), {spec_.seed, LoadPurpose::tokens, at});
    made.num_output = spec_.output.draw(output);
    turns.push_back(std::move(made));
  }
  return turns;
}

double LoadWorkload::gap(int64_t index) const {
  if (index == 0) return 0;
  return LoadRandom(spec_.seed, LoadPurpose::arrival, static_cast<uint64_t>(index)).exponential();
}

uint64_t LoadWorkload::sampling_seed(int64_t index, int64_t turn) const {
  return LoadRandom(spec_.seed, LoadPurpose::sampling, turn_index(index, turn)).next();
}

uint64_t hash_tokens(uint64_t before, const std::vector<TokenId>& tokens) {
  uint64_t hash = mix64(before ^ tokens.size());
  for (const TokenId id : tokens) hash = mix64(hash ^ static_cast<uint64_t>(id));
  return hash;
}

uint64_t load_fingerprint(const std::vector<LoadTurn>& turns) {
  uint64_t hash = 0;
  for (const LoadTurn& turn : turns) {
    hash = hash_tokens(mix64(hash ^ static_cast<uint64_t>(turn.num_output)), turn.tokens);
  }
  return hash;
}

}  // namespace headrace
