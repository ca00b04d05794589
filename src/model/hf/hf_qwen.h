// What the Hugging Face configs of the Qwen family have in common.
#pragma once

#include <string_view>

#include "model/hf/hf_model.h"
#include "model/hf/hf_writer.h"

namespace headrace {

/// A decoder with SiLU, whose last layers, from `max_window_layers` on, have a window if
/// `use_sliding_window` says so.
void read_hf_qwen(HfModel& model);
/// The other way.
void write_hf_qwen(HfWriter& out, std::string_view model_type);

}  // namespace headrace
