// A Hugging Face directory as a Checkpoint: GGUF's keys and tensor names, so that nothing behind it
// tells the two formats apart. Owns the directory's mappings and the tensors that are made of its.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"

namespace headrace {

/// Opens a directory with config.json and safetensors. `general.architecture` is GGUF's name of
/// what config.json's `architectures` names; `general.sampling.*` comes from
/// generation_config.json, `tokenizer.chat_template` from the files that hold one. Rows of queries
/// and keys are in halves (keeps_rope_halves()). Tensors that differ from GGUF's only by their name
/// lie in the files; others are made when they are read, and forgotten when released.
///
/// Errors name file and key or tensor: those of HfDirectory::open; unsupported (an architecture or
/// variant that is not built in); corrupt_data (a config that contradicts itself).
Result<std::unique_ptr<Checkpoint>> open_hf_checkpoint(const std::string& path);

/// Whether the path is meant as a Hugging Face model: a directory, or a safetensors or config.json
/// file in one.
bool is_hf_path(const std::string& path);
/// The path itself if it is a directory, else the directory that the file is in.
std::string directory_of_hf_path(const std::string& path);

/// A model of either form: a GGUF file (checkpoint.h), or a Hugging Face directory. Errors: those
/// of the two.
Result<std::unique_ptr<Checkpoint>> open_model_files(const std::string& path);

}  // namespace headrace
