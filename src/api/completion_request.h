// The body of POST /v1/completions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/generation_params.h"
#include "api/json.h"
#include "api/params_json.h"
#include "headrace/result.h"

namespace headrace::api {

/// Text, or ids that are in the vocabulary. Either may be empty.
struct Prompt {
  std::optional<std::string> text{};
  std::vector<TokenId> ids{};  ///< where there is no text
};

struct CompletionRequest {
  GenerationParams params;
  std::vector<Prompt> prompts;  ///< at least one
  bool echo = false;            ///< answers begin with their prompt
  /// Of text prompts: whether the model's own first token and so on are put around them, and
  /// whether control tokens that they spell are taken for what they are.
  bool adds_special = true;
  bool parses_special = false;
  std::vector<std::string> warnings;
};

/// Errors (400): a field of a wrong type or out of range, one that is not built, no prompt.
Result<CompletionRequest> parse_completion_request(const Json& body, const ParamsContext& context);

/// `value`, at `path`, if it is an id of the vocabulary.
Result<void> append_token_id(const Json& value, const std::string& path, int64_t vocab_size,
                             std::vector<TokenId>& to);
/// Of an array at `path`.
Result<std::vector<TokenId>> read_token_ids(const Json& array, const std::string& path,
                                            int64_t vocab_size);
/// The value of the field `name` alone: one or several of them.
Result<std::vector<Prompt>> read_prompts(const Json& value, const ParamsContext& context,
                                         const std::string& name = "prompt");
/// Error (invalid_argument): too many answers of one request.
Result<void> check_num_choices(size_t num_prompts, const GenerationParams& params,
                               const RequestLimits& limits);

}  // namespace headrace::api
