// The architectures of this build: one line each, in registry.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "model/architecture.h"

namespace headrace {

std::span<const Architecture* const> architectures();

/// Null if this build does not know it. Several may share a GGUF name; the first is found.
const Architecture* find_architecture(std::string_view gguf_name);
const Architecture* find_hf_architecture(std::string_view hf_name);

/// GGUF's names of all, for messages: "gemma3, llama".
std::string known_architectures();

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
