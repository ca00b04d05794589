// What the name of a model's file tells: its quantisation, and which part of a split file it is.
// Must not read files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

/// The quantisation in a GGUF file's name, in capitals ("Q4_K_M", "BF16", "IQ2_XXS", "MXFP4"), or
/// "". The last one in the name; where there is none, the last folder's.
std::string quantization_of(std::string_view path);

struct SplitName {
  std::string base;  ///< the path without "-00001-of-00003.gguf"
  int part = 0;      ///< from 1
  int total = 0;
};

/// Of "x-00001-of-00003.gguf", and the same of .safetensors; nothing where the file is no part.
/// Sources: llama.cpp's gguf-split; Transformers' names of shards.
std::optional<SplitName> split_name_of(std::string_view path);

/// Whether a .gguf file holds no language model by its name: a projector of images, an importance
/// matrix.
bool is_companion_gguf(std::string_view path);

}  // namespace headrace
