// Byte-level BPE: text is cut into words, the bytes of each word are joined pair by pair.
#pragma once

#include <array>

#include "text/base_tokenizer.h"
#include "text/pair_table.h"

namespace headrace::text {

class BpeTokenizer final : public BaseTokenizer {
 public:
  BpeTokenizer(Vocabulary vocabulary, TokenMatcher matcher);
  std::string description() const override;

 protected:
  std::unique_ptr<Run> start(size_t num_bytes) const override;
  bool strips_first_space() const override { return false; }

 private:
  class BpeRun;

  PairTable pairs_;
  std::array<TokenId, 256> byte_ids_;  ///< -1: the vocabulary lacks the byte
  bool has_all_bytes_ = true;
  StringIndex words_;  ///< of the tokens' bytes; only where words come before merges
};

}  // namespace headrace::text
