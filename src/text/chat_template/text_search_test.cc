#include "text/chat_template/text_search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace headrace::jinja {
namespace {

TEST(TextSearch, AgreesWithTheStandardLibrary) {
  std::mt19937 random(7);
  Budget budget(int64_t{1} << 40, 1 << 20, 16);
  int num_found = 0;
  for (int round = 0; round < 20'000; ++round) {
    // Few letters and repeated blocks: periodic needles, with and without a flaw, that occur.
    const auto letters = [&](size_t size) {
      std::string out;
      while (out.size() < size) out += static_cast<char>('a' + random() % 2);
      return out;
    };
    std::string needle, text;
    const std::string block = letters(1 + random() % 20);
    while (needle.size() < 33 + random() % 40) needle += block;
    if (random() % 2 == 0) needle[random() % needle.size()] ^= 3;
    if (random() % 4 == 0) needle = letters(random() % 50);
    for (size_t i = random() % 12; i > 0; --i) {
      text += random() % 2 == 0 ? block : letters(random() % 30);
      if (random() % 4 == 0) text += needle;
      if (random() % 4 == 0) text += needle.substr(0, random() % (needle.size() + 1));
    }
    TextSearch search(budget, needle);
    const size_t from = random() % (text.size() + 2);
    ASSERT_EQ(search.find(text, from), text.find(needle, from)) << needle << " in " << text;
    ASSERT_EQ(search.rfind(text), text.rfind(needle)) << needle << " in " << text;
    num_found += search.find(text) != TextSearch::npos ? 1 : 0;
  }
  EXPECT_GT(num_found, 3000);
  EXPECT_LT(num_found, 17'000);
}

TEST(TextSearch, HighBytesAndZeros) {
  Budget budget(1'000'000, 1 << 20, 16);
  const std::string needle = std::string(20, '\xFF') + std::string(20, '\0') + "\x80";
  const std::string text = std::string(100, '\xFF') + needle + std::string(100, '\0');
  TextSearch search(budget, needle);
  EXPECT_EQ(search.find(text), 100U);
  EXPECT_EQ(search.rfind(text), 100U);
}

TEST(TextSearch, ChargesTheBytesItSearched) {
  Budget budget(100, 1 << 20, 16);
  TextSearch search(budget, "b");
  EXPECT_EQ(search.find(std::string(12'000, 'a')), TextSearch::npos);  // 93 steps
  EXPECT_EQ(search.find("b" + std::string(12'000, 'a')), 0U);
  EXPECT_THROW(search.rfind(std::string(12'000, 'a')), Fault);
}

}  // namespace
}  // namespace headrace::jinja
