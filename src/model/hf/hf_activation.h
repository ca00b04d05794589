// Activation functions by name: "<architecture>.activation", a key of this project's own, and the
// names that transformers gives them (ACT2FN).
#pragma once

#include <string_view>

#include "backend/backend.h"
#include "model/config.h"
#include "model/hf/hf_model.h"

namespace headrace {

/// The key's activation, or `missing` where the file has none.
Activation read_activation(ConfigReader& reader, Activation missing);

/// Sets the key from a config's; a fault for one that is not built in.
void copy_hf_activation(HfModel& model, std::string_view hf_key, std::string_view missing);

/// What Hugging Face configs call it.
std::string_view hf_activation_name(Activation activation);

}  // namespace headrace
