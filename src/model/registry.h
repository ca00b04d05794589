// The architectures of this build: one line each, in registry.cc.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "model/config.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace headrace {

struct Architecture {
  std::string_view gguf_name;  ///< `general.architecture`
  std::string_view hf_name;    ///< `architectures[0]` of a Hugging Face config
  RopeRows gguf_rope_rows;     ///< order of query and key rows in GGUF files
  ModelConfig (*read_config)(ConfigReader& reader);
  std::unique_ptr<Decoder> (*load)(ModelConfig config, Loader& load);
};

std::span<const Architecture> architectures();

/// Null if this build does not know it.
const Architecture* find_architecture(std::string_view gguf_name);

/// A checkpoint's architecture and config: all that is needed to say what the model needs, and what
/// it is loaded with.
struct RecognizedModel {
  const Architecture* architecture = nullptr;
  ModelConfig config;
};

/// Errors name the key, not the file: unsupported (an architecture or a variant of it that is not
/// built in), corrupt_data (a key is missing, of the wrong type or out of range).
Result<RecognizedModel> recognize(const Checkpoint& checkpoint);

}  // namespace headrace
