// Keys of config.json whose values GGUF has as they are: tables that a model is both read and
// written by. Must not know files.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "model/config.h"
#include "model/hf/hf_model.h"
#include "model/hf/hf_writer.h"

namespace headrace {

/// A size, without which there is no model: a missing one is a fault.
struct HfSize {
  int64_t ModelConfig::*field;
};

struct HfNumber {
  float ModelConfig::*field;
  double missing;  ///< what it is where config.json has none
};

struct HfFlag {
  bool ModelConfig::*field;
  bool missing;  ///< likewise
};

struct HfKey {
  std::string_view gguf;  ///< without "<architecture>."
  std::string_view hf;
  std::variant<HfSize, HfNumber, HfFlag> value;
};

/// Sets GGUF's keys from those of config.json.
void read_hf_keys(HfModel& model, std::span<const HfKey> keys);
/// The other way, from the fields.
void write_hf_keys(HfWriter& out, std::span<const HfKey> keys);

/// Of decoders built like Llama: sizes, heads and the norms' epsilon.
std::span<const HfKey> hf_decoder_keys();

}  // namespace headrace
