// The answer to one request: the events of its prompts and choices, collected. Must not know JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/choice_text.h"
#include "api/embedding_options.h"
#include "api/prepared_request.h"
#include "headrace/request.h"
#include "text/tokenizer.h"

namespace headrace::api {

enum class ChoiceEnd : uint8_t { running, stop, length };

struct Choice {
  /// Without an echo of the prompt. It only grows, by whole characters, and never has a part of a
  /// stop string in it.
  std::string text;
  ChoiceEnd end = ChoiceEnd::running;
  std::optional<std::string> stop_string;  ///< that ended it
  TokenId stop_token = -1;
  int64_t num_tokens = 0;
  std::vector<TokenText> tokens;   ///< if asked for; those in `text` as a whole
  std::vector<float> embedding{};  ///< of kind embed: as it is told; of kind score: the classes
  RequestStats stats;
};

/// What is known of a prompt's own tokens.
struct PromptTokens {
  std::vector<TokenId> ids;             ///< kept only if log-probabilities were asked for
  std::vector<PromptLogprob> logprobs;  ///< of ids[1], ids[2], ...
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;  ///< of the prompts
};

/// Where the time of a request went, over all prompts and choices; they may overlap.
struct AnswerTimes {
  double queue_ms = 0;
  double prompt_ms = 0;
  double predicted_ms = 0;
  double sample_ms = 0;
  int64_t prompt_n = 0;     ///< computed, not cached
  int64_t predicted_n = 0;  ///< up to stop strings
  int64_t decoded_n = 0;    ///< all but the first ones, which came with their prompts

  /// One more completion, but for its prompt.
  void add(const RequestStats& stats);
};

class Answer {
 public:
  /// What it keeps of `request` is copied.
  Answer(const PreparedRequest& request, std::shared_ptr<const Tokenizer> tokenizer);

  /// Takes the next event of prompt number `prompt`. The choice that is to be cancelled now, since
  /// its text has ended. An ErrorEvent, and a choice that the engine cancelled of itself, end the
  /// answer.
  std::optional<int32_t> take(size_t prompt, const Event& event);

  bool has_failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(Error error);

  size_t num_prompts() const { return prompts_.size(); }
  /// All choices of the first prompt, then those of the next.
  const std::vector<Choice>& choices() const { return choices_; }
  const PromptTokens& prompt(size_t i) const { return prompts_[i]; }
  size_t prompt_of(size_t choice) const { return choice / num_choices_; }
  Usage usage() const;
  AnswerTimes times() const;
  /// Tokens computed past stop strings.
  int64_t num_overrun() const;
  /// Who answered, where that was not the model that was asked; else empty.
  const std::string& answered_by() const { return choices_.front().stats.model; }

 private:
  void take_token(size_t choice, const TokenEvent& token);
  void take_kept(size_t choice);
  void take_embedding(size_t prompt, const EmbeddingEvent& event);
  void take_finish(size_t choice, const FinishEvent& finish);

  size_t num_choices_;  ///< of each prompt
  bool keeps_tokens_;
  std::string answers_as_;                             ///< see PreparedRequest
  std::shared_ptr<const EmbeddingOptions> embedding_;  ///< null: of another kind
  std::vector<Choice> choices_;
  std::vector<ChoiceText> texts_;
  std::vector<PromptTokens> prompts_;
  std::optional<Error> error_;
};

}  // namespace headrace::api
