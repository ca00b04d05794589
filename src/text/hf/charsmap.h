// SentencePiece's precompiled normaliser: a double-array trie of what is replaced, and what by. The
// form: google/sentencepiece, src/normalizer.cc; the trie: s-yata/darts-clone. Owns the bytes. Must
// not know where they are from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"

namespace headrace::text {

class Charsmap {
 public:
  /// Error (corrupt_data): the trie's size is not that of whole units inside of `blob`.
  static Result<Charsmap> make(std::string_view blob);

  struct Found {
    size_t size = 0;  ///< bytes that are replaced; 0: none
    std::string_view by;
  };
  /// The shortest and the longest entry at the beginning of `text`.
  Found shortest(std::string_view text) const { return find(text, false); }
  Found longest(std::string_view text) const { return find(text, true); }

  const std::string& blob() const { return blob_; }

 private:
  Found find(std::string_view text, bool longest) const;
  std::string_view replacement(uint32_t at) const;

  std::string blob_;
  std::vector<uint32_t> units_;
  size_t texts_ = 0;  ///< where the replacements begin in blob_
};

/// Standard base64; nothing where `text` is none.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace headrace::text
