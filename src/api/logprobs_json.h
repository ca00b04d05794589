// Log-probabilities in the shapes that clients know. Numbers that JSON has not are -9999, OpenAI's
// word for minus infinity.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/json.h"
#include "text/tokenizer.h"

namespace headrace::api {

/// Of chat completions: {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}, from token
/// number `first` on.
Json chat_logprobs(const Choice& choice, size_t first, int32_t num_top, const Tokenizer& tokenizer);

/// How far the text of one completion was told.
struct TextPlace {
  size_t num_characters = 0;  ///< of an echo and the text
  size_t text_bytes = 0;      ///< of the text alone
};

/// Of completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; offsets count
/// characters.
class CompletionLogprobs {
 public:
  /// Goes on at `place`, and moves it.
  CompletionLogprobs(int32_t num_top, std::shared_ptr<const Tokenizer> tokenizer, TextPlace& place);

  /// The tokens of a prompt that is echoed, as far as they spell it; the first has no number.
  void add_prompt(const std::string& echo, const PromptTokens& prompt);
  /// Those of the choice, from number `first` on.
  void add_tokens(const Choice& choice, size_t first);
  Json take();

 private:
  void add(TokenId id, size_t offset);
  void add_known(TokenId id, float logprob, const std::vector<TokenLogprob>& top);

  const int32_t num_top_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  TextPlace& place_;
  std::vector<Json> tokens_;
  std::vector<Json> token_logprobs_;
  std::vector<Json> top_logprobs_;
  std::vector<Json> text_offset_;
};

/// vLLM's prompt_logprobs: null for the first token, then {"ID": {"logprob", "rank",
/// "decoded_token"}}; a rank past those that were asked for is null.
Json prompt_logprobs(const PromptTokens& prompt, int32_t num_top, const Tokenizer& tokenizer);

}  // namespace headrace::api
