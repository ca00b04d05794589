// Reads `normalizer`, `pre_tokenizer` and `decoder` of a tokenizer.json. Must not know
// vocabularies.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/hf/pipeline.h"

namespace headrace::text {

/// Appends the steps. Errors (unsupported, corrupt_data) name the step's type and field.
Result<void> read_normalizer(const nlohmann::json& normalizer, Pipeline& pipeline);
Result<void> read_pre_tokenizer(const nlohmann::json& pre_tokenizer, Pipeline& pipeline);
Result<void> read_decoder(const nlohmann::json& decoder, Pipeline& pipeline);

}  // namespace headrace::text
