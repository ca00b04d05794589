// What stands for a loaded model and the way it computes.
#pragma once

#include <string>
#include <string_view>

#include "app/open_model.h"

namespace headrace {

/// "hr-0.1.0-avx512-q12-1f2e3d4c5b6a": version, instruction set, KV type, and a sum over the
/// tokenizer, the tensors' names, formats and shapes and a little of each one's data. The last part
/// is the model's alone. With equal fingerprints equal requests get equal answers.
std::string system_fingerprint(const OpenedModel& model, std::string_view version);

}  // namespace headrace
