// For tests of tokenizers: the pieces of a text.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "text/test_vocabulary.h"

namespace headrace::text {

inline constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
inline constexpr EncodeOptions kParsed{.add_special = false, .parse_special = true};

inline Pieces encode(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options = kPlain) {
  const auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok());
  return ids.ok() ? pieces(tokenizer, *ids) : Pieces{};
}

}  // namespace headrace::text
