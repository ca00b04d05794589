// Reads `model` and `added_tokens` of a tokenizer.json. Must not know the other steps.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/hf/word_model.h"

namespace headrace::text {

/// Fills pieces, kinds, index, merges and rules of added tokens, and returns the model. `added` is
/// an array of added tokens, or null. Errors name the key and the token.
Result<ModelSpec> read_model(const nlohmann::json& model, const nlohmann::json& added,
                             Vocabulary& vocabulary);

/// Appends the added tokens to a vocabulary that has the model's tokens already; `spec.in_model`
/// grows with it.
Result<void> add_tokens(const nlohmann::json& added, Vocabulary& vocabulary, ModelSpec& spec);

}  // namespace headrace::text
