// What the Hugging Face configs of the Gemma family have in common.
#pragma once

#include <string_view>

#include "model/hf/hf_model.h"
#include "model/hf/hf_writer.h"

namespace headrace {

/// A decoder whose heads have 256 features unless it says otherwise, with GELU by tanh, and norms
/// stored as the difference from 1.
void read_hf_gemma_decoder(HfModel& model);

/// Gemma 2 and 3: norms after the blocks too, soft caps, the scale of queries by
/// `query_pre_attn_scalar`.
void read_hf_gemma_sandwich(HfModel& model);

/// The other way.
void write_hf_gemma_decoder(HfWriter& out, std::string_view model_type);
void write_hf_gemma_sandwich(HfWriter& out, std::string_view model_type);

}  // namespace headrace
