// What is wrong in a model file's metadata is an Error that names the key.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "text/test_vocabulary.h"

namespace headrace::text {
namespace {

void expect_error(Metadata& metadata, std::string_view key, std::string_view detail = "") {
  const auto made = make_tokenizer(metadata, {});
  ASSERT_FALSE(made.ok()) << key;
  const std::string message = made.error().to_string();
  EXPECT_NE(message.find(key), std::string::npos) << message;
  EXPECT_NE(message.find(detail), std::string::npos) << message;
}

TEST(GgufVocabulary, BadMetadataNamesItsKey) {
  struct Case {
    const char* key;
    MetaValue value;
    const char* detail;
  };
  const Case cases[] = {
      {"tokenizer.ggml.model", std::string_view("rwkv"), "'rwkv'"},
      {"tokenizer.ggml.model", int64_t{3}, ""},
      {"tokenizer.ggml.pre", std::string_view("odd"), "--pre-tokenizer"},
      {"tokenizer.ggml.tokens", std::vector<std::string_view>{}, ""},
      {"tokenizer.ggml.token_type", std::vector<int64_t>{1, 1}, "2"},
      {"tokenizer.ggml.bos_token_id", int64_t{5000}, "5000"},
      {"tokenizer.ggml.eos_token_id", int64_t{-7}, "-7"},
      {"tokenizer.ggml.eot_token_id", int64_t{1} << 40, ""},
      {"tokenizer.ggml.merges", std::vector<std::string_view>{"a b", "nospace"}, "merge 0 'a b'"},
      {"tokenizer.ggml.merges", std::vector<std::string_view>{"h e", "nospace"}, "merge 1"},
      {"tokenizer.ggml.merges", std::vector<std::string_view>{" "}, "merge 0"},
      {"tokenizer.ggml.merges", std::vector<std::string_view>{""}, "merge 0"},
      {"tokenizer.ggml.add_bos_token", int64_t{1}, ""},
  };
  for (const Case& one : cases) {
    auto builder = byte_level_example();
    Metadata metadata = builder.metadata();
    metadata.set(one.key, one.value);
    expect_error(metadata, one.key, one.detail);
  }
}

TEST(GgufVocabulary, TwoEqualTokens) {
  auto builder = byte_level_example();
  builder.token("hello");
  expect_error(builder.metadata(), "tokenizer.ggml.tokens", "'hello'");
}

TEST(GgufVocabulary, BadTokenTypeAndScores) {
  auto builder = sentencepiece_example();
  Metadata metadata = builder.metadata();
  const size_t n =
      std::get<std::vector<std::string_view>>(*metadata.find("tokenizer.ggml.tokens")).size();
  std::vector<int64_t> types(n, 1);
  types[7] = 9;
  metadata.set("tokenizer.ggml.token_type", types);
  expect_error(metadata, "tokenizer.ggml.token_type", "token 7");
  metadata = builder.metadata();
  std::vector<double> scores(n, 0.0);
  scores[4] = std::numeric_limits<double>::quiet_NaN();
  metadata.set("tokenizer.ggml.scores", scores);
  expect_error(metadata, "tokenizer.ggml.scores", "token 4");
  metadata.set("tokenizer.ggml.scores", std::vector<double>{1.0});
  expect_error(metadata, "tokenizer.ggml.scores");
}

TEST(GgufVocabulary, MissingKeysAreNamed) {
  Metadata metadata;
  expect_error(metadata, "tokenizer.ggml.model");
  metadata.set("tokenizer.ggml.model", std::string_view("gpt2"));
  expect_error(metadata, "tokenizer.ggml.tokens");
  metadata.set("tokenizer.ggml.tokens", std::vector<std::string_view>{"a"});
  expect_error(metadata, "tokenizer.ggml.merges");
  metadata.set("tokenizer.ggml.model", std::string_view("llama"));
  expect_error(metadata, "tokenizer.ggml.scores");
}

TEST(GgufVocabulary, AnAddedBosNeedsItsId) {
  VocabularyBuilder builder("gpt2");
  builder.set_text("tokenizer.ggml.pre", "gpt-2");
  builder.byte_level_alphabet();
  builder.set("tokenizer.ggml.add_bos_token", true);
  expect_error(builder.metadata(), "tokenizer.ggml.bos_token_id");
}

TEST(GgufVocabulary, TheFlagOverridesThePreTokenizer) {
  auto builder = byte_level_example();
  builder.set_text("tokenizer.ggml.pre", "odd");
  const auto made = make_tokenizer(builder.metadata(), {.pre = "smollm"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->description(), "byte-level BPE (smollm)");
  const auto wrong = make_tokenizer(builder.metadata(), {.pre = "even"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().to_string().find("'even'"), std::string::npos);
}

TEST(GgufVocabulary, TooLongASpecialTokenIsRefused) {
  auto builder = byte_level_example();
  builder.token(std::string(5000, 'x'), TokenKind::control);
  expect_error(builder.metadata(), "tokenizer.ggml.tokens", "5000");
}

TEST(GgufVocabulary, PaddingRowsAreNotMatched) {
  for (const TokenKind kind : {TokenKind::user_defined, TokenKind::control, TokenKind::unknown}) {
    auto builder = byte_level_example();
    const TokenId next = builder.token("<x>", TokenKind::user_defined) + 1;
    const std::string padding = "[PAD" + std::to_string(next) + "]";
    builder.token(padding, kind);
    const auto t = builder.build();
    ASSERT_NE(t, nullptr);
    EXPECT_EQ(t->kind(next), TokenKind::unused);
    const EncodeOptions parsed = {.add_special = false, .parse_special = true};
    EXPECT_GT(t->encode(padding, parsed).value().size(), 1U);
    EXPECT_EQ(t->bytes(next), "");
    EXPECT_EQ(t->decode(std::vector<TokenId>{next}, false), "");
  }
}

TEST(Fingerprint, EqualVocabulariesAgreeAndDifferencesAreNamed) {
  // Digits, in which the two pre-tokenisers differ.
  const auto example = [] {
    auto builder = byte_level_example();
    builder.merge("1", "2");
    return builder;
  };
  const auto a = example().build();
  const auto same = example().build();
  EXPECT_EQ(a->fingerprint(), same->fingerprint());
  EXPECT_EQ(a->fingerprint().digest.size(), 64U);
  EXPECT_TRUE(check_same_tokenizer(*a, "model", *same, "draft model").ok());

  const auto expect_difference = [&](VocabularyBuilder builder, std::string_view part) {
    const auto b = builder.build();
    ASSERT_NE(b, nullptr);
    const auto checked = check_same_tokenizer(*a, "model", *b, "draft model");
    ASSERT_FALSE(checked.ok()) << part;
    EXPECT_EQ(checked.error().code, ErrorCode::mismatch);
    const std::string message = checked.error().to_string();
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("draft model"), std::string::npos);
  };
  auto more = example();
  more.token("xyz");
  expect_difference(std::move(more), "none vs 'xyz'");
  auto merged = example();
  merged.token("xyz");
  merged.merge("x", "y");
  expect_difference(std::move(merged), "xyz");
  auto pre = example();
  pre.set_text("tokenizer.ggml.pre", "smollm");
  expect_difference(std::move(pre), "'gpt-2' vs 'smollm'");
  expect_difference(sentencepiece_example(), "vs '<unk>'");
  auto framed = example();
  framed.set("tokenizer.ggml.add_bos_token", true);
  expect_difference(std::move(framed), "what stands around a text");
}

TEST(Fingerprint, NamesOfTheSameRulesAndPaddingDoNotMatter) {
  auto padded = byte_level_example();
  padded.set_text("tokenizer.ggml.pre", "phi-2");
  const TokenId next = *byte_level_example().build()->find("<think>") + 1;
  padded.token("[PAD" + std::to_string(next) + "]", TokenKind::user_defined);
  EXPECT_EQ(byte_level_example().build()->fingerprint(), padded.build()->fingerprint());
}

}  // namespace
}  // namespace headrace::text
