// tokenizer.json and tokenizer_config.json written from GGUF's keys. Must not know files.
#pragma once

#include <string>

#include "checkpoint/metadata.h"
#include "headrace/result.h"

namespace headrace {

/// The texts of a directory's files.
struct WrittenTokenizerFiles {
  std::string tokenizer;  ///< tokenizer.json
  std::string config;     ///< tokenizer_config.json, with the chat template
  bool is_same = true;    ///< false: some texts have other ids, for want of words in the format
};

/// Of byte-level BPE with a published pre-tokeniser, and of SentencePiece's BPE, whose merges are
/// made of its scores. What was made is read again and compared on texts. Errors: those of a
/// tokenizer that cannot be read; unsupported (other kinds).
Result<WrittenTokenizerFiles> write_hf_tokenizer(const Metadata& metadata);

}  // namespace headrace
