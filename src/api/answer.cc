// See answer.h.
#include "api/answer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/embedding_vector.h"
#include "base/check.h"

namespace headrace::api {

void AnswerTimes::add(const RequestStats& stats) {
  queue_ms = std::max(queue_ms, stats.queue_ms);
  prompt_ms = std::max(prompt_ms, stats.prefill_ms);
  predicted_ms = std::max(predicted_ms, stats.decode_ms);
  sample_ms += stats.sample_ms;
  predicted_n += stats.completion_tokens;
  decoded_n += std::max<int64_t>(stats.completion_tokens - 1, 0);
}

Answer::Answer(const PreparedRequest& request, std::shared_ptr<const Tokenizer> tokenizer)
    : num_choices_(static_cast<size_t>(request.params.num_choices)),
      keeps_tokens_(request.keeps_tokens || request.params.num_logprobs >= 0),
      answers_as_(request.answers_as),
      embedding_(request.embedding) {
  ChoiceTextOptions options{.min_tokens = request.params.stop.min_tokens,
                            .goes_on = request.goes_on,
                            .keeps_tokens = keeps_tokens_};
  if (!request.params.stop_strings.empty()) {
    options.stop_strings = std::make_shared<const StopStrings>(request.params.stop_strings);
  }
  for (const Request& part : request.requests) {
    PromptTokens& prompt = prompts_.emplace_back();
    if (part.num_prompt_logprobs >= 0) prompt.ids = part.prompt;
    for (size_t i = 0; i < num_choices_; ++i) {
      choices_.emplace_back();
      texts_.emplace_back(tokenizer, options);
    }
  }
}

std::optional<int32_t> Answer::take(size_t prompt, const Event& event) {
  HEADRACE_CHECK_LT(prompt, prompts_.size());
  const auto choice_at = [&](int32_t choice) {
    HEADRACE_CHECK(choice >= 0 && static_cast<size_t>(choice) < num_choices_);
    return prompt * num_choices_ + static_cast<size_t>(choice);
  };
  if (const auto* token = std::get_if<TokenEvent>(&event)) {
    const size_t choice = choice_at(token->choice);
    const bool had_stopped = texts_[choice].has_stopped();
    take_token(choice, *token);
    if (!had_stopped && texts_[choice].has_stopped()) return token->choice;
  } else if (const auto* logprobs = std::get_if<PromptLogprobsEvent>(&event)) {
    auto& known = prompts_[prompt].logprobs;
    known.insert(known.end(), logprobs->tokens.begin(), logprobs->tokens.end());
  } else if (const auto* embedding = std::get_if<EmbeddingEvent>(&event)) {
    take_embedding(prompt, *embedding);
  } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
    take_finish(choice_at(finish->choice), *finish);
  } else {
    fail(std::get<ErrorEvent>(event).error);
  }
  return std::nullopt;
}

void Answer::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void Answer::take_token(size_t choice, const TokenEvent& token) {
  Choice& out = choices_[choice];
  out.text += texts_[choice].push(token);
  out.num_tokens = texts_[choice].num_tokens();
  take_kept(choice);
}

void Answer::take_kept(size_t choice) {
  if (!keeps_tokens_) return;
  auto& known = choices_[choice].tokens;
  for (TokenText& token : texts_[choice].take_tokens()) known.push_back(std::move(token));
}

void Answer::take_embedding(size_t prompt, const EmbeddingEvent& event) {
  std::vector<float>& out = choices_[prompt * num_choices_].embedding;
  out = event.values;
  if (embedding_ == nullptr) return;
  if (auto shaped = shape_embedding(out, *embedding_); !shaped.ok()) {
    fail(std::move(shaped).error());
  }
}

void Answer::take_finish(size_t choice, const FinishEvent& finish) {
  Choice& out = choices_[choice];
  ChoiceText& text = texts_[choice];
  out.text += text.finish();
  out.stats = finish.stats;
  if (!answers_as_.empty()) out.stats.model = answers_as_;
  out.num_tokens = text.num_tokens();
  take_kept(choice);
  if (text.has_stopped()) {
    out.end = ChoiceEnd::stop;
    out.stop_string = text.stop();
    return;
  }
  switch (finish.reason) {
    case FinishReason::stop:
      out.end = ChoiceEnd::stop;
      out.stop_token = finish.stop_token;
      break;
    case FinishReason::length:
      out.end = ChoiceEnd::length;
      break;
    case FinishReason::cancelled:
      fail({ErrorCode::cancelled, "the request was cancelled", "", ""});
      break;
  }
}

Usage Answer::usage() const {
  Usage usage;
  for (size_t i = 0; i < choices_.size(); ++i) {
    usage.completion_tokens += choices_[i].num_tokens;
    if (i % num_choices_ != 0) continue;
    usage.prompt_tokens += choices_[i].stats.prompt_tokens;
    usage.cached_tokens += choices_[i].stats.cached_tokens;
  }
  return usage;
}

AnswerTimes Answer::times() const {
  AnswerTimes times;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const RequestStats& stats = choices_[i].stats;
    times.add(stats);
    // The engine does not know of stop strings; what it computed past them is overrun.
    times.predicted_n += choices_[i].num_tokens - stats.completion_tokens;
    if (i % num_choices_ == 0) times.prompt_n += stats.prompt_tokens - stats.cached_tokens;
  }
  return times;
}

int64_t Answer::num_overrun() const {
  int64_t sum = 0;
  for (const ChoiceText& text : texts_) sum += text.num_overrun();
  return sum;
}

}  // namespace headrace::api
