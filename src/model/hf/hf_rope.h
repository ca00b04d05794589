// Rotary embedding in a Hugging Face config, in the spellings of transformers 4 (`rope_theta`,
// `rope_scaling`) and 5 (`rope_parameters`, perhaps one for each kind of layer).
#pragma once

#include <string_view>

#include "model/hf/hf_model.h"

namespace headrace {

/// What an architecture's own config class assumes where a config says nothing.
struct HfRopeDefaults {
  double theta = 10000;
  double partial_factor = 1;  ///< which part of a head is rotated
};

/// Sets GGUF's `rope.*` keys and, for llama3 and longrope, the tensors of divisors. Types: default,
/// linear, dynamic, yarn, llama3, longrope (also "su"). `layer_type`: of parameters that are given
/// for each kind of layer, which ("full_attention"). Faults name the key.
void read_hf_rope(HfModel& model, const HfRopeDefaults& defaults = {},
                  std::string_view layer_type = "full_attention");

/// The parameters of a kind of layer: rope_parameters[layer_type], rope_parameters, rope_scaling,
/// or nothing, over the config itself, where transformers 4 keeps some.
HfConfig hf_rope_parameters(const HfConfig& config, std::string_view layer_type);

}  // namespace headrace
