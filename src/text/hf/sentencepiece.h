// SentencePiece models, from a tokenizer.model or a GGUF file's metadata, as a pipeline. Must not
// know files.
#pragma once

#include <memory>
#include <string_view>

#include "text/hf/normalizers.h"
#include "text/hf/tokenizer_json.h"
#include "text/vocabulary.h"

namespace headrace::text {

/// What such a model says.
struct SentencePieceModel {
  Vocabulary vocabulary;  ///< pieces, kinds, scores, and the special tokens it names
  bool unigram = true;    ///< else BPE
  bool byte_fallback = false;
  SentencePieceRules rules;
};

/// The largest tokenizer.model that is read.
inline constexpr size_t kMaxSentencePieceBytes = size_t{128} << 20;

/// The message ModelProto of sentencepiece_model.proto. Errors (corrupt_data, unsupported) name
/// field, piece and offset.
Result<SentencePieceModel> read_sentencepiece(std::string_view bytes);

/// The tokenizer; `files` may add tokens and say which stand around a text. `place` names the file
/// in errors, `options` as those of open_hf_tokenizer. A text's extra spaces are removed in each
/// stretch between user-defined symbols, and the space before a text is put where ordinary text
/// begins it.
Result<std::shared_ptr<const Tokenizer>> build_sentencepiece(SentencePieceModel model,
                                                             const HfFiles& files,
                                                             std::string_view place,
                                                             const TokenizerOptions& options = {});

/// A GGUF file's Unigram model: `tokenizer.ggml.precompiled_charsmap`, `add_space_prefix` and
/// `remove_extra_whitespaces` besides the vocabulary.
Result<std::shared_ptr<const Tokenizer>> build_gguf_unigram(const Metadata& metadata,
                                                            Vocabulary vocabulary);

}  // namespace headrace::text
