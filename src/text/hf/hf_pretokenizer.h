// Recognises the `pre_tokenizer` of a Hugging Face tokenizer.json. Must not know vocabularies.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "headrace/result.h"
#include "text/pretokenize.h"

namespace headrace::text {

/// Error (unsupported) that spells out the steps found, where no known rules are equal to them.
Result<PreTokenizerName> recognise_pre_tokenizer(const nlohmann::json& pre_tokenizer);

/// The rules of one step Split, where a scanner made for its pattern does the same.
std::optional<PreTokenizerName> recognise_split(const nlohmann::json& step);

/// The other way: steps that are recognised as these rules; nothing where none are known.
std::optional<nlohmann::ordered_json> pre_tokenizer_json(PreTokenizer rules);

}  // namespace headrace::text
