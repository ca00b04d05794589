// See outcomes.h.
#include "engine/simulation/outcomes.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "engine/simulation/checksum_runner.h"
#include "engine/simulation/workload.h"

namespace headrace {
namespace {

using Fault = SimulationFault;

void check_scores(OpenRequest& open, const PromptLogprobsEvent& scores) {
  if (scores.first_position != open.num_scored) throw Fault("scores with a gap, or told twice");
  for (const PromptLogprob& score : scores.tokens) {
    const std::span<const TokenId> prompt(open.request.prompt);
    const auto before = prompt.first(static_cast<size_t>(++open.num_scored));
    if (score.token.id != before.back() || score.token.logprob != checksum_score(before)) {
      throw Fault("a wrong score of a prompt's token");
    }
  }
}

/// The tokens that the choice must have, and whether it ends with an end token after them.
std::pair<std::vector<TokenId>, bool> expected(const Request& request, int32_t choice,
                                               int64_t context) {
  std::vector<TokenId> tokens = request.prompt;
  int64_t left = context - static_cast<int64_t>(tokens.size());
  if (request.stop.max_tokens >= 0) left = std::min(left, request.stop.max_tokens);
  std::vector<TokenId> out;
  for (; left > 0; --left) {
    const TokenId id = checksum_next(tokens, *request.sampling.seed, kSimulatedVocab, choice);
    if (id == kSimulatedEnd && !request.stop.ignore_eos) return {std::move(out), true};
    tokens.push_back(id);
    out.push_back(id);
  }
  return {std::move(out), false};
}

/// A request with kPoison cannot be served, unless nothing of it was computed.
void check_poisoned(const OpenRequest& open) {
  const bool was_asked_for_nothing = open.request.stop.max_tokens == 0;
  if (open.cancelled_choice == -2 && !was_asked_for_nothing) {
    throw Fault("a request that no step can serve was served");
  }
}

void check_scored(const OpenRequest& open) {
  const auto num_prompt = static_cast<int64_t>(open.request.prompt.size());
  const bool wants_scores = open.request.num_prompt_logprobs >= 0;
  if (wants_scores && open.cancelled_choice == -2 && open.num_scored != num_prompt) {
    throw Fault("scores are missing");
  }
}

/// A timeline has every token once, whatever failed and was computed again.
void check_timeline(const OpenRequest& open, const OpenRequest::Choice& choice) {
  const FinishEvent& finish = *choice.finish;
  if ((finish.timeline != nullptr) != open.request.keeps_timeline) {
    throw Fault("a timeline that nobody asked for, or none");
  }
  if (finish.timeline == nullptr || finish.timeline->is_incomplete) return;
  size_t num_tokens = 0;
  double last_ms = 0;
  for (const TimelineEntry& entry : finish.timeline->entries) {
    num_tokens += static_cast<size_t>(entry.num_tokens);
    constexpr double kRounding = 1e-6;
    if (entry.start_ms < last_ms - kRounding) throw Fault("a timeline that goes back");
    last_ms = entry.start_ms + entry.duration_ms;
  }
  const size_t num_ends = finish.stop_token >= 0 ? 1 : 0;
  if (num_tokens != choice.tokens.size() + num_ends) throw Fault("a timeline of other tokens");
  if (finish.timeline->num_preemptions < finish.stats.num_preemptions) {
    throw Fault("a timeline without a preemption");
  }
}

/// Whether the model itself said one of the tokens that no step survives.
bool says_what_fails(const OpenRequest& open) {
  for (const OpenRequest::Choice& choice : open.choices) {
    for (const TokenId id : {kPoison, kSpoiled}) {
      const auto& tokens = choice.tokens;
      if (std::find(tokens.begin(), tokens.end(), id) != tokens.end()) return true;
    }
  }
  return false;
}

}  // namespace

bool OpenRequest::contains(TokenId id) const {
  return std::find(request.prompt.begin(), request.prompt.end(), id) != request.prompt.end();
}

void OpenRequest::read(const Event& event) {
  if (error) throw Fault("an event after an error");
  if (const auto* token = std::get_if<TokenEvent>(&event)) {
    Choice& choice = choices.at(static_cast<size_t>(token->choice));
    if (choice.finish) throw Fault("a token after the end of its choice");
    choice.tokens.push_back(token->id);
  } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
    Choice& choice = choices.at(static_cast<size_t>(finish->choice));
    if (choice.finish) throw Fault("a choice ended twice");
    choice.finish = *finish;
  } else if (const auto* scores = std::get_if<PromptLogprobsEvent>(&event)) {
    check_scores(*this, *scores);
  } else {
    error = std::get<ErrorEvent>(event).error;
  }
}

void Outcomes::check(const OpenRequest& open, int64_t now_ns) {
  for (int32_t i = 0; i < open.request.num_choices; ++i) check_choice(open, i);
  if (open.error) return check_error(open, now_ns);
  if (open.contains(kPoison)) check_poisoned(open);
  for (const OpenRequest::Choice& choice : open.choices) {
    if (!choice.finish) throw Fault("a stream that ended before its choices");
  }
  check_scored(open);
}

void Outcomes::check_choice(const OpenRequest& open, int32_t index) {
  const OpenRequest::Choice& choice = open.choices[static_cast<size_t>(index)];
  const auto [tokens, stops] = expected(open.request, index, max_context_);
  const bool is_start = choice.tokens.size() <= tokens.size() &&
                        std::equal(choice.tokens.begin(), choice.tokens.end(), tokens.begin());
  if (!is_start) throw Fault("a token that is not the model's");
  if (!choice.finish) return;
  check_timeline(open, choice);
  if (choice.finish->reason == FinishReason::cancelled) {
    const bool was_asked = open.cancelled_choice == -1 || open.cancelled_choice == index;
    if (!was_asked) throw Fault("cancelled by nobody");
    ++counts_.num_cancelled;
    return;
  }
  const auto reason = stops ? FinishReason::stop : FinishReason::length;
  if (choice.tokens != tokens) throw Fault("it ended too early");
  if (choice.finish->reason != reason) throw Fault("it ended for another reason");
  ++counts_.num_finished;
}

void Outcomes::check_error(const OpenRequest& open, int64_t now_ns) {
  switch (open.error->code) {
    case ErrorCode::deadline_exceeded:
      ++counts_.num_expired;
      if (open.request.timeout_ms == 0) throw Fault("expired without a deadline");
      if (now_ns < open.arrived_ns + open.request.timeout_ms * 1'000'000) {
        throw Fault("expired before its deadline");
      }
      return;
    case ErrorCode::resource_exhausted:
      ++counts_.num_failed;
      if (!memory_fails_) throw Fault("memory ran out: " + open.error->to_string());
      return;
    case ErrorCode::internal:
      ++counts_.num_failed;
      if (open.contains(kPoison) || open.contains(kSpoiled) || says_what_fails(open)) return;
      if (++num_unlucky_ <= num_failed_alone_) return;
      throw Fault("failed without reason: " + open.error->to_string());
    default:
      throw Fault("an error of no kind that there is: " + open.error->to_string());
  }
}

}  // namespace headrace
