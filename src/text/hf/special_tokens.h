// The special tokens that the files beside a tokenizer.json name. Must not know files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "text/hf/pipeline.h"
#include "text/hf/tokenizer_json.h"

namespace headrace::text {

/// The id of a token given as a text or as an object with `content`; -1 where there is none.
TokenId named_token(const Vocabulary& vocabulary, const nlohmann::json& value);

/// The post-processor's templates. Error: an unknown type, an unknown token, or a template without
/// the text, or with it twice.
Result<void> read_post_processor(const nlohmann::json& post, const Vocabulary& vocabulary,
                                 TokenTemplate& single, TokenTemplate& pair);

/// Fills vocabulary.special from tokenizer_config.json, where it says nothing from
/// special_tokens_map.json, from `single` and generation_config.json; changes `single` and `pair`
/// where add_bos_token and add_eos_token ask for it.
Result<void> read_special_tokens(const HfFiles& files, Vocabulary& vocabulary,
                                 TokenTemplate& single, TokenTemplate& pair);

/// Appends the tokens of tokenizer_config.json's added_tokens_decoder that `added` (an array, as in
/// tokenizer.json) lacks.
Result<void> append_added_tokens_decoder(const HfFiles& files, nlohmann::json& added);

}  // namespace headrace::text
