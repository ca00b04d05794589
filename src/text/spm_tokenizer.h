// SentencePiece BPE: characters are joined to pieces by score; what is no piece falls back to
// bytes.
#pragma once

#include <array>

#include "text/base_tokenizer.h"

namespace headrace::text {

class SpmTokenizer final : public BaseTokenizer {
 public:
  SpmTokenizer(Vocabulary vocabulary, TokenMatcher matcher);
  std::string description() const override { return "SentencePiece BPE"; }

 protected:
  std::unique_ptr<Run> start(size_t num_bytes) const override;
  bool strips_first_space() const override { return vocabulary().space_prefix; }

 private:
  class SpmRun;

  TokenId joinable(std::string_view piece) const;

  std::vector<uint32_t> ranks_;        ///< by id: 0 for the best score; kNoRank: never joined to
  size_t longest_ = 0;                 ///< bytes of the longest piece that can be joined to
  std::array<TokenId, 256> byte_ids_;  ///< -1: the vocabulary lacks the byte
  /// By the byte before it: a space may join to what is before it, so no word ends there.
  std::array<bool, 256> joins_space_{};
};

}  // namespace headrace::text
