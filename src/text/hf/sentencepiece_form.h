// SentencePiece's BPE said by scores (GGUF, tokenizer.model) and by merges (tokenizer.json), one
// from the other. Must not know files.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace headrace::text {

/// All ways to join two ordinary tokens to a third (of 512 bytes at the most), the best score
/// first: SentencePiece joins the neighbours whose piece has the best score.
std::vector<MergeRule> merges_of_scores(const Vocabulary& vocabulary);

/// Whether each character of a piece is an ordinary token: then all ways to join it are merges.
bool has_character_tokens(const Vocabulary& vocabulary, std::string_view piece);

/// What a pipeline's vocabulary lacks to be one of Algorithm::sentencepiece_bpe.
struct SentencePieceForm {
  std::vector<TokenKind> kinds;  ///< by id
  std::vector<float> scores;     ///< by id
  bool space_prefix = false;
  bool is_same = true;  ///< false: rules for spaces or added tokens may cut some texts otherwise
};

/// Of a vocabulary of Algorithm::pipeline whose steps are those of SentencePiece's BPE and whose
/// merges are those of scores; nothing for others.
std::optional<SentencePieceForm> sentencepiece_form(const Vocabulary& vocabulary);

}  // namespace headrace::text
