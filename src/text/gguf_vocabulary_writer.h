// Says a vocabulary in GGUF's keys: the other way of read_gguf_vocabulary. Must not know files.
#pragma once

#include <deque>
#include <string>

#include "checkpoint/metadata.h"
#include "headrace/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// Sets `tokenizer.ggml.*`. Strings point into the tokenizer, or into `texts`; both must outlive
/// the metadata. What GGUF cannot say (white space that a token takes with it, a normaliser that
/// the pre-tokeniser's name does not imply) is left out: whether the same tokenizer comes of it is
/// told by same_as_written. Error: unsupported, where the tokenizer has no vocabulary.
Result<void> put_gguf_vocabulary(const Tokenizer& tokenizer, Metadata& metadata,
                                 std::deque<std::string>& texts);

/// Whether these keys give a tokenizer of the same fingerprint, or, of SentencePiece's BPE read
/// from a tokenizer.json, one with the same rules.
bool same_as_written(const Tokenizer& tokenizer, const Metadata& metadata);

/// Adds unused tokens ("[PAD151646]") until there are `size`: as many as a padded embedding has
/// rows.
void pad_gguf_vocabulary(Metadata& metadata, size_t size, std::deque<std::string>& texts);

}  // namespace headrace
