// Tokenising takes time linear in the length of the text, and no deep recursion, whatever the
// text: 10 MB of one thing within 16 times the time of 1 MB.
#include <gtest/gtest.h>

#include <pthread.h>
#include <algorithm>
#include <ctime>

#include "text/base_tokenizer.h"
#include "text/test_vocabulary.h"
#include "text/wordpiece_tokenizer.h"

namespace headrace::text {
namespace {

// Merges that turn runs of everything below into ever longer tokens: the worst case.
std::shared_ptr<const Tokenizer> byte_level(std::string pre) {
  VocabularyBuilder builder("gpt2");
  builder.set_text("tokenizer.ggml.pre", std::move(pre));
  builder.byte_level_alphabet();
  const auto spell = [](std::string_view bytes) {
    std::string out;
    for (const char c : bytes) out += ByteAlphabet::get().spelling(static_cast<uint8_t>(c));
    return out;
  };
  for (const std::string_view unit : {"a", " "}) {
    std::string run = spell(unit);
    for (int i = 0; i < 5; ++i) {
      builder.merge(run, run);
      run += run;
    }
  }
  for (const std::string_view unit : {"中", "\U0001F600"}) {
    std::string left = spell(unit.substr(0, 1));
    for (const char c : unit.substr(1)) {
      const std::string right = spell({&c, 1});
      builder.merge(left, right);
      left += right;
    }
    builder.merge(left, left);
  }
  return builder.build();
}

// Under sanitizers how long things take says nothing, and a text is read for the faults alone: of a
// size that takes many of merge_word's windows, and no minutes.
#ifdef HEADRACE_SANITIZED
constexpr bool kIsSanitized = true;
constexpr size_t kLargeBytes = 500'000;
#else
constexpr bool kIsSanitized = false;
constexpr size_t kLargeBytes = 10'000'000;
#endif

std::string repeated(std::string_view unit, size_t num_bytes) {
  std::string text;
  text.reserve(num_bytes + unit.size());
  while (text.size() < num_bytes) text += unit;
  return text;
}

// Processor time of `times` calls, as other programs run beside.
double seconds(const Tokenizer& tokenizer, const std::string& text, int times) {
  const std::clock_t begin = std::clock();
  for (int i = 0; i < times; ++i) {
    EXPECT_TRUE(tokenizer.encode(text, {.add_special = false, .parse_special = true}).ok());
  }
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void expect_linear(const Tokenizer& tokenizer, std::initializer_list<std::string_view> units = {
                                                   "a", " ", "中", "\U0001F600", "'us'", "<|"}) {
  for (const std::string_view unit : units) {
    const std::string large = repeated(unit, kLargeBytes);
    if (kIsSanitized) {
      seconds(tokenizer, large, 1);
      continue;
    }
    const std::string small = repeated(unit, kLargeBytes / 10);
    // Other programs share the caches. Ten small texts, five on either side, take about the time
    // of the large one, so they are slowed as often; and again unless it is near 10.
    double ratio = 1e9;
    for (int round = 0; round < 12 && ratio > 12; ++round) {
      const double before = seconds(tokenizer, small, 5);
      const double many = seconds(tokenizer, large, 1);
      const double few = (before + seconds(tokenizer, small, 5)) / 10;
      ratio = std::min(ratio, many / std::max(few, 1e-3));
    }
    EXPECT_LE(ratio, 16) << "'" << unit << "'";
    std::cout << tokenizer.description() << ": 10 MB of '" << (unit == "\n" ? "\\n" : unit)
              << "' takes " << ratio << " times as long as 1 MB\n";
  }
}

TEST(LinearTime, ByteLevelBpe) {
  for (const char* pre : {"smollm"}) {
    const auto t = byte_level(pre);
    ASSERT_NE(t, nullptr);
    expect_linear(*t);
  }
}

TEST(LinearTime, SentencePiece) {
  auto builder = sentencepiece_example();
  std::string run = "a", spaces(kSpaceMark);
  for (int i = 0; i < 5; ++i) {
    run += run;
    builder.token(run, TokenKind::normal, -20 - i);
    spaces += spaces;
    if (i > 0) builder.token(spaces, TokenKind::normal, -1e9 - i);
  }
  const auto t = builder.build();
  ASSERT_NE(t, nullptr);
  expect_linear(*t);
}

TEST(LinearTime, AddedTokensThatTakeTheSpaceBesideThem) {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.pieces.add(ByteAlphabet::get().spelling(static_cast<uint8_t>(byte)));
    vocabulary.kinds.push_back(TokenKind::normal);
  }
  for (const std::string_view piece : {"  ", "<|"}) {
    const auto id = static_cast<TokenId>(vocabulary.size());
    vocabulary.pieces.add(piece);
    vocabulary.kinds.push_back(TokenKind::user_defined);
    vocabulary.added.push_back({id, true, true, false, false, {}});
  }
  ASSERT_TRUE(index_pieces(vocabulary, "tokens").ok());
  spell_bytes(vocabulary);
  const auto t = build_tokenizer(std::move(vocabulary), "tokens");
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  expect_linear(**t, {" ", "<|"});
}

TEST(LinearTime, Wordpiece) {
  VocabularyBuilder builder("bert");
  builder.token("▁a");
  builder.token("a");
  builder.token("▁中");
  builder.token("[UNK]", TokenKind::control);
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{3});
  const auto t = builder.build();
  ASSERT_NE(t, nullptr);
  expect_linear(*t);
}

// On a stack of 128 KiB, so that recursion on the text would show.
TEST(NoDeepRecursion, LongRunsOnASmallStack) {
  const auto names = known_pre_tokenizers();
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  const auto body = [](void* argument) -> void* {
    for (const PreTokenizerName& pre :
         *static_cast<const std::span<const PreTokenizerName>*>(argument)) {
      for (const std::string_view unit : {"'us'", "A", "Z", "中", ".", " ", "\n", "a1 "}) {
        const std::string text = repeated(unit, 200'000);
        size_t total = 0;
        pretokenize(pre.rules, text, [&](std::string_view word) { total += word.size(); });
        EXPECT_EQ(total, text.size()) << pre.name;
      }
    }
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body,
                           const_cast<void*>(static_cast<const void*>(&names))),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace headrace::text
