// Says a vocabulary in GGUF's keys: the other way of read_gguf_vocabulary. Must not know files.
#pragma once

#include <deque>
#include <string>

#include "checkpoint/metadata.h"
#include "headrace/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// Sets `tokenizer.ggml.*`. Strings point into the tokenizer, or into `texts`; both must outlive
/// the metadata. Steps of a tokenizer.json that are those of SentencePiece BPE are said as
/// that. What GGUF cannot say (white space that a token takes with it, a normaliser
/// that the pre-tokeniser's name does not imply) is left out: whether the same tokenizer comes of
/// it is told by same_as_written. Error: unsupported, where the tokenizer has no vocabulary, or
/// other steps.
Result<void> put_gguf_vocabulary(const Tokenizer& tokenizer, Metadata& metadata,
                                 std::deque<std::string>& texts);

/// Whether these keys give a tokenizer of the same fingerprint, that also treats what stands beside
/// control tokens alike, and whose rules are known to be the same where they are spelled otherwise.
bool same_as_written(const Tokenizer& tokenizer, const Metadata& metadata);

}  // namespace headrace
