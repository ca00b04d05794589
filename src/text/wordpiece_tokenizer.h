// WordPiece: words at white space and punctuation, each cut greedily into the longest pieces.
#pragma once

#include "text/base_tokenizer.h"

namespace headrace::text {

class WordpieceTokenizer final : public BaseTokenizer {
 public:
  /// Vocabularies in GGUF spell the beginning of a word with U+2581 and its continuation plain.
  /// Error (corrupt_data) where no piece begins a word.
  static Result<void> check(const Vocabulary& vocabulary, std::string_view key);

  WordpieceTokenizer(Vocabulary vocabulary, TokenMatcher matcher);
  std::string description() const override { return "WordPiece"; }

 protected:
  std::unique_ptr<Run> start(size_t num_bytes) const override;
  bool strips_first_space() const override { return true; }

 private:
  class WordpieceRun;

  bool lower_case_ = true;  ///< no piece has a capital letter
  size_t longest_ = 0;      ///< bytes of the longest piece
};

}  // namespace headrace::text
