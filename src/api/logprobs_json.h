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

/// Of chat completions: {"content": [{"token", "logprob", "bytes", "top_logprobs"}]}.
Json chat_logprobs(const Choice& choice, int32_t num_top, const Tokenizer& tokenizer);

/// Of completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; offsets count
/// characters. With `echo`, the prompt's tokens come first; the first of them has no number.
Json completion_logprobs(const Choice& choice, const std::string* echo, const PromptTokens& prompt,
                         int32_t num_top, const std::shared_ptr<const Tokenizer>& tokenizer);

/// vLLM's prompt_logprobs: null for the first token, then {"ID": {"logprob", "rank",
/// "decoded_token"}}; a rank past those that were asked for is null.
Json prompt_logprobs(const PromptTokens& prompt, int32_t num_top, const Tokenizer& tokenizer);

}  // namespace headrace::api
