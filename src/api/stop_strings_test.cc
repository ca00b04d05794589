#include "api/stop_strings.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

namespace headrace::api {
namespace {

struct Shown {
  std::string text;
  std::optional<std::string> stop;
  bool operator==(const Shown&) const = default;
};

/// By the definition: the match that ends first, of those the longest.
Shown expected_of(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string* longest = nullptr;
    for (const std::string& stop : stops) {
      const bool ends = text.substr(0, end).ends_with(stop);
      if (ends && (longest == nullptr || stop.size() > longest->size())) longest = &stop;
    }
    if (longest != nullptr) return {text.substr(0, end - longest->size()), *longest};
  }
  return {text, std::nullopt};
}

Shown shown_of(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  StopMatcher matcher(std::make_shared<const StopStrings>(stops));
  Shown out;
  for (const std::string& piece : pieces) out.text += matcher.push(piece);
  out.text += matcher.finish();
  if (matcher.has_stopped()) out.stop = matcher.stop();
  return out;
}

TEST(StopMatcher, StringsAcrossPieces) {
  EXPECT_EQ(shown_of({"ABC", "DEF", "G", "HIJ", "K"}, {"DEFGHIJ"}), (Shown{"ABC", "DEFGHIJ"}));
  EXPECT_EQ(shown_of({" Al", "ice", "!"}, {"\n", "Alice:"}), (Shown{" Alice!", std::nullopt}));
  EXPECT_EQ(shown_of({"a", "\n", "b"}, {"\n", "Alice:"}), (Shown{"a", "\n"}));
  EXPECT_EQ(shown_of({"aabaaa", "bab"}, {"aabab"}), (Shown{"aaba", "aabab"}));
  EXPECT_EQ(shown_of({"xabcd"}, {"abcd", "bc"}), (Shown{"xa", "bc"}));
  EXPECT_EQ(shown_of({"x", "abc"}, {"bc", "abc", "c"}), (Shown{"x", "abc"}));
  EXPECT_EQ(shown_of({}, {"a"}), (Shown{"", std::nullopt}));
}

TEST(StopMatcher, HeldTextIsNoMoreThanWhatMayBeAStop) {
  StopMatcher matcher(std::make_shared<const StopStrings>(std::vector<std::string>{"</end>"}));
  EXPECT_EQ(matcher.push("text <"), "text ");
  EXPECT_EQ(matcher.held_bytes(), 1u);
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("b>"), "<b>");
  EXPECT_EQ(matcher.held_bytes(), 0u);
  EXPECT_EQ(matcher.push("</en"), "");
  EXPECT_EQ(matcher.finish(), "</en");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, WithoutStringsTextPasses) {
  StopMatcher matcher(nullptr);
  EXPECT_EQ(matcher.push("any"), "any");
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_FALSE(matcher.has_stopped());
}

TEST(StopMatcher, AnyCutGivesTheSame) {
  std::mt19937 random(7);
  const auto word = [&](size_t least, size_t most) {
    std::string out;
    // Few letters make many near matches; one of them has two bytes.
    for (size_t n = least + random() % (most - least + 1); n > 0; --n) {
      out += std::vector<std::string>{"a", "b", "\xC3\xA9"}[random() % 3];
    }
    return out;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = 1 + random() % 4; n > 0; --n) stops.push_back(word(1, 5));
    const std::string text = word(0, 24);
    const Shown expected = expected_of(text, stops);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t count = 1 + random() % 5;
      pieces.push_back(text.substr(at, count));
      at += count;
    }
    ASSERT_EQ(shown_of(pieces, stops), expected) << text;
    ASSERT_EQ(expected.text.find(expected.stop.value_or("none")), std::string::npos);
    // Nothing that was given out is taken back, and no part of a stop string is among it.
    StopMatcher matcher(std::make_shared<const StopStrings>(stops));
    std::string given;
    for (const std::string& piece : pieces) {
      given += matcher.push(piece);
      ASSERT_TRUE(expected.text.starts_with(given));
    }
  }
}

TEST(StopMatcher, ManyLongStringsTakeLinearTime) {
  std::vector<std::string> stops;
  for (int i = 0; i < 256; ++i) stops.push_back(std::string(4000, 'a') + std::to_string(i));
  StopMatcher matcher(std::make_shared<const StopStrings>(stops));
  size_t shown = 0;
  for (int i = 0; i < 20'000; ++i) shown += matcher.push("a").size();
  EXPECT_EQ(shown, 16'000u);
  EXPECT_EQ(matcher.finish().size(), 4000u);
}

}  // namespace
}  // namespace headrace::api
