// A model's files whichever form they have, and the tokenizer that belongs to them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "model/hf/hf_checkpoint.h"
#include "text/tokenizer.h"

namespace headrace {

/// The tokenizer of a GGUF file's keys, or of the files in a Hugging Face directory, with unused
/// tokens for rows of the embedding that have none. Of a directory without any, and of a file whose
/// `tokenizer.ggml.model` is "none", make_id_tokenizer with as many ids as the embedding has rows.
/// Errors: those of the two.
Result<std::shared_ptr<const Tokenizer>> tokenizer_of(const Checkpoint& checkpoint,
                                                      const TokenizerOptions& options);

/// The chat template of a GGUF file's keys, or of the files in a Hugging Face directory; nothing
/// where there is none. Errors: those of the two.
Result<std::optional<std::string>> chat_template_of(const Checkpoint& checkpoint);

/// Rows of the embedding; 0 for a file that holds a vocabulary alone.
int64_t embedding_rows(const Checkpoint& checkpoint);

}  // namespace headrace
