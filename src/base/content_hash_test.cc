#include "base/content_hash.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

std::string hex_of(std::string_view text) {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(text.data(), text.size())));
  return to_hex(hash.digest());
}

// As Python's xxhash 3 gives them.
TEST(ContentHash, IsThatOfXxHash) {
  EXPECT_EQ(hex_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex_of("headrace"), "d204bc6c7a983ece79778286cfaaea08");
}

TEST(ContentHash, PiecesDoNotMatter) {
  const std::string text(5000, 'x');
  ContentHash hash;
  for (size_t at = 0; at < text.size(); at += 700) {
    const std::string piece = text.substr(at, 700);
    hash.add(std::as_bytes(std::span(piece.data(), piece.size())));
    (void)hash.digest();
  }
  EXPECT_EQ(to_hex(hash.digest()), "c40b706e6ba9af508d8567cbc9ee3d90");
  EXPECT_EQ(to_hex(hash.digest()), hex_of(text));
}

TEST(ContentHash, TextsHaveEnds) {
  const auto of = [](std::string_view first, std::string_view second) {
    ContentHash hash;
    hash.add_text(first);
    hash.add_text(second);
    return hash.digest();
  };
  EXPECT_EQ(of("ab", "c"), of("ab", "c"));
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(of("", "abc"), of("abc", ""));
}

}  // namespace
}  // namespace headrace
