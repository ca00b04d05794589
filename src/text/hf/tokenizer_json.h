// Reads a tokenizer from the texts of a Hugging Face directory. Must not know files.
#pragma once

#include <memory>
#include <string_view>

#include "text/tokenizer.h"

namespace headrace::text {

/// The texts of a directory's files; empty where a file is absent.
struct HfFiles {
  std::string_view tokenizer = {};           ///< tokenizer.json
  std::string_view tokenizer_config = {};    ///< tokenizer_config.json
  std::string_view generation_config = {};   ///< generation_config.json
  std::string_view special_tokens_map = {};  ///< special_tokens_map.json
  std::string_view sentencepiece = {};       ///< tokenizer.model
  std::string_view added_tokens = {};        ///< added_tokens.json
};

/// The largest tokenizer.json that is read. (Gemma's, of 262 144 tokens, has 33 MB.)
inline constexpr size_t kMaxJsonBytes = size_t{128} << 20;

/// From tokenizer.json: what Hugging Face tokenizers makes of the file, but that a text has its
/// special tokens around it once, even where it wrote them itself. Byte-level BPE with a published
/// pattern is read by scanners made for it, all else step by step. Errors name the file and the
/// key; `place` names the file in errors of the vocabulary as a whole.
Result<std::shared_ptr<const Tokenizer>> read_tokenizer_json(const HfFiles& files,
                                                             const TokenizerOptions& options,
                                                             std::string_view place);

}  // namespace headrace::text
