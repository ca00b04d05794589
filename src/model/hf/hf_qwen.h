// What the Hugging Face configs of the Qwen family have in common.
#pragma once

#include "model/hf/hf_model.h"

namespace headrace {

/// A decoder with SiLU, whose last layers, from `max_window_layers` on, have a window if
/// `use_sliding_window` says so.
void read_hf_qwen(HfModel& model);

}  // namespace headrace
