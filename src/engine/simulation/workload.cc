// See workload.h.
#include "engine/simulation/workload.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headrace {

int64_t SimulatedChance::below(int64_t n) {
  uint64_t bits = 0;
  if (bytes_.size() >= 2) {
    bits = static_cast<uint64_t>(bytes_[0]) << 8 | bytes_[1];
    bytes_ = bytes_.subspan(2);
  } else {
    bits = random_();
  }
  return static_cast<int64_t>(bits % static_cast<uint64_t>(std::max<int64_t>(n, 1)));
}

std::vector<TokenId> SimulatedChance::tokens(int64_t count) {
  std::vector<TokenId> out(static_cast<size_t>(count));
  for (TokenId& id : out) id = static_cast<TokenId>(below(kOrdinary));
  return out;
}

Workload::Workload(SimulatedChance& chance, int64_t max_context, bool with_faults)
    : chance_(chance), max_context_(max_context), with_faults_(with_faults) {
  for (auto& prefix : prefixes_) prefix = chance_.tokens(10 + chance_.below(max_context / 2));
}

const std::vector<TokenId>& Workload::some_conversation() {
  const auto size = static_cast<int64_t>(conversations_.size());
  return conversations_[static_cast<size_t>(chance_.below(size))];
}

// Of a conversation, or of what several prompts begin with.
std::vector<TokenId> Workload::some_beginning() {
  if (chance_.below(4) == 0 && !conversations_.empty()) {
    return some_conversation();
  }
  if (chance_.below(2) == 0) return {};
  const auto& prefix = prefixes_[chance_.below(4)];
  return {prefix.begin(), prefix.begin() + chance_.below(static_cast<int64_t>(prefix.size()))};
}

std::vector<TokenId> Workload::some_prompt() {
  std::vector<TokenId> prompt = some_beginning();
  const auto tail = chance_.tokens(1 + chance_.below(chance_.below(4) == 0 ? 60 : 8));
  prompt.insert(prompt.end(), tail.begin(), tail.end());
  // Most have room for an answer.
  const auto longest = static_cast<size_t>(max_context_) * 3 / 4;
  if (chance_.below(20) != 0 && prompt.size() > longest) prompt.resize(longest);
  if (with_faults_ && chance_.below(150) == 0) {
    prompt[static_cast<size_t>(chance_.below(static_cast<int64_t>(prompt.size())))] = kPoison;
  } else if (with_faults_ && chance_.below(150) == 0) {
    prompt.back() = kSpoiled;
  }
  return prompt;
}

Request Workload::next_request() {
  Request request;
  request.prompt = some_prompt();
  request.stop.max_tokens = chance_.below(10) == 0 ? -1 : chance_.below(24);
  request.stop.ignore_eos = chance_.below(2) == 0;
  request.sampling.seed = static_cast<uint64_t>(chance_.below(3));
  if (chance_.below(8) == 0) request.num_choices = static_cast<int32_t>(1 + chance_.below(4));
  if (chance_.below(16) == 0) request.num_prompt_logprobs = 0;
  if (chance_.below(4) == 0)
    request.priority = static_cast<int32_t>(chance_.below(17) + kMinPriority);
  if (chance_.below(20) == 0) request.timeout_ms = 1 + chance_.below(400);
  request.owner = "owner " + std::to_string(chance_.below(4));
  if (chance_.below(4) == 0) request.cache_scope = "another";
  request.use_prefix_cache = chance_.below(10) != 0;
  request.keeps_timeline = request.prompt.size() % 2 == 0;
  return request;
}

void Workload::remember(std::vector<TokenId> tokens) {
  const auto is_bad = [](TokenId id) { return id >= kOrdinary; };
  if (std::any_of(tokens.begin(), tokens.end(), is_bad)) return;
  if (conversations_.size() < 8) {
    conversations_.push_back(std::move(tokens));
  } else {
    conversations_[static_cast<size_t>(chance_.below(8))] = std::move(tokens);
  }
}

}  // namespace headrace
