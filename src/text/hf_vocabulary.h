// Reads the vocabulary of a Hugging Face tokenizer.json. Must not know files.
#pragma once

#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace headrace::text {

/// The texts of a directory's files; empty where a file is absent.
struct HfFiles {
  std::string_view tokenizer;          ///< tokenizer.json
  std::string_view tokenizer_config;   ///< tokenizer_config.json
  std::string_view generation_config;  ///< generation_config.json
};

/// The largest tokenizer.json that is read. (Gemma's, of 262 144 tokens, has 33 MB.)
inline constexpr size_t kMaxJsonBytes = size_t{128} << 20;

/// Byte-level BPE only. Errors name the file and the key.
Result<Vocabulary> read_hf_vocabulary(const HfFiles& files, const TokenizerOptions& options);

}  // namespace headrace::text
