// tokenizer.json written from GGUF's keys, and read again: the same ids and texts.
#include "text/hf/tokenizer_json_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "tests/conformance.h"
#include "text/gguf_vocabulary_writer.h"
#include "text/hf/hf_pretokenizer.h"
#include "text/hf/tokenizer_json.h"
#include "text/test_vocabulary.h"

namespace headrace::text {
namespace {

constexpr const char* kTexts[] = {
    "", "hello", "hello hello  he", " hell\n\nhello 12345", "héllo <end>x", "  two", "<s>hello"};

/// And back: GGUF's keys of the tokenizer that was read.
void expect_same_as_gguf(const Tokenizer& before, const Tokenizer& tokenizer) {
  Metadata metadata;
  std::deque<std::string> texts;
  ASSERT_TRUE(put_gguf_vocabulary(tokenizer, metadata, texts).ok());
  EXPECT_TRUE(same_as_written(tokenizer, metadata));
  const auto after = make_tokenizer(metadata, {});
  ASSERT_TRUE(after.ok()) << after.error().to_string();
  EXPECT_EQ((*after)->special().bos, before.special().bos);
  for (const char* text : kTexts) {
    const EncodeOptions options = {.add_special = true, .parse_special = true};
    const auto expected = before.encode(text, options).value();
    EXPECT_EQ((*after)->encode(text, options).value(), expected) << text;
    EXPECT_EQ((*after)->decode(expected, true), before.decode(expected, true)) << text;
  }
}

void expect_same(VocabularyBuilder& builder) {
  const auto before = builder.build();
  const auto written = write_hf_tokenizer(builder.metadata());
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_TRUE(written->is_same);
  const auto after = read_tokenizer_json(
      {.tokenizer = written->tokenizer, .tokenizer_config = written->config}, {}, "tokenizer.json");
  ASSERT_TRUE(after.ok()) << after.error().to_string();
  for (const char* text : kTexts) {
    const EncodeOptions options = {.add_special = true, .parse_special = true};
    const auto expected = before->encode(text, options).value();
    EXPECT_EQ((*after)->encode(text, options).value(), expected) << text;
    EXPECT_EQ((*after)->decode(expected, true), before->decode(expected, true)) << text;
  }
  expect_same_as_gguf(*before, **after);
}

TEST(TokenizerJsonWriter, ByteLevel) {
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "smollm"}) {
    VocabularyBuilder builder("gpt2");
    builder.byte_level_alphabet();
    builder.merge("h", "e");
    builder.merge("l", "l");
    builder.merge("he", "ll");
    builder.merge("hell", "o");
    builder.merge("\xC4\xA0", "hello");
    builder.merge("1", "2");
    const TokenId end = builder.token("<end>", TokenKind::control);
    builder.token("[PAD263]", TokenKind::unused);
    builder.set_text("tokenizer.ggml.pre", pre);
    builder.set("tokenizer.ggml.bos_token_id", static_cast<uint64_t>(end));
    builder.set("tokenizer.ggml.eos_token_id", static_cast<uint64_t>(end));
    builder.set("tokenizer.ggml.add_bos_token", std::string_view(pre) == "llama-bpe");
    SCOPED_TRACE(pre);
    expect_same(builder);
  }
}

TEST(TokenizerJsonWriter, SentencePiece) {
  for (const bool has_prefix : {true, false}) {
    VocabularyBuilder builder("llama");
    builder.token("<unk>", TokenKind::unknown);
    const TokenId bos = builder.token("<s>", TokenKind::control);
    const TokenId eos = builder.token("<end>", TokenKind::control);
    builder.byte_tokens();
    double score = 0;
    for (const char* piece : {"he", "ll", "hell", "hello", "\xE2\x96\x81hello", "\xE2\x96\x81t"}) {
      builder.token(piece, TokenKind::normal, --score);
    }
    for (const char* piece : {"h", "e", "l", "o", "\xE2\x96\x81", "1", "2", "t", "w"}) {
      builder.token(piece, TokenKind::normal, --score);
    }
    builder.set("tokenizer.ggml.bos_token_id", static_cast<uint64_t>(bos));
    builder.set("tokenizer.ggml.eos_token_id", static_cast<uint64_t>(eos));
    builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
    builder.set("tokenizer.ggml.add_space_prefix", has_prefix);
    SCOPED_TRACE(has_prefix);
    expect_same(builder);
  }
}

/// <unk>, <s>, </s> and all bytes, with the ids that the keys name; no BOS.
VocabularyBuilder sentencepiece_start(bool has_bytes = true) {
  VocabularyBuilder builder("llama");
  builder.token("<unk>", TokenKind::unknown);
  builder.token("<s>", TokenKind::control);
  builder.token("</s>", TokenKind::control);
  if (has_bytes) builder.byte_tokens();
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.bos_token_id", uint64_t{1});
  builder.set("tokenizer.ggml.eos_token_id", uint64_t{2});
  builder.set("tokenizer.ggml.add_bos_token", false);
  return builder;
}

// The library looks for them in the text before spaces are marked.
TEST(TokenizerJsonWriter, TokensThatUsersDefinedAreSpelledAsTheTextHasThem) {
  for (const bool has_marks : {true, false}) {
    auto builder = sentencepiece_start();
    const std::string mark(kSpaceMark);
    builder.token(mark, TokenKind::normal, -10);
    builder.token("a", TokenKind::normal, -11);
    const TokenId two = builder.token(has_marks ? mark + mark : "  ", TokenKind::user_defined);
    builder.set("tokenizer.ggml.add_space_prefix", false);
    const auto before = builder.build();
    const auto written = write_hf_tokenizer(builder.metadata());
    ASSERT_TRUE(written.ok()) << written.error().to_string();
    const auto root = nlohmann::json::parse(written->tokenizer);
    EXPECT_EQ(root["added_tokens"].back()["content"], "  ");
    EXPECT_EQ(root["model"]["vocab"]["  "], two);
    EXPECT_EQ(written->is_same, !has_marks) << "SentencePiece joins marks of the text too";
    const auto after = read_tokenizer_json(
        {.tokenizer = written->tokenizer, .tokenizer_config = written->config}, {}, "here");
    ASSERT_TRUE(after.ok()) << after.error().to_string();
    const EncodeOptions options = {.add_special = true, .parse_special = true};
    for (const char* text : {"a  a", "   a", "a<unk>\u00E9  <s>"}) {
      EXPECT_EQ((*after)->encode(text, options).value(), before->encode(text, options).value())
          << text;
    }
  }
}

TEST(TokenizerJsonWriter, JoinsOfCharactersThatAreNoTokensCannotBeSaid) {
  for (const bool has_b : {true, false}) {
    auto builder = sentencepiece_start();
    builder.token(std::string(kSpaceMark), TokenKind::normal, -10);
    builder.token("a", TokenKind::normal, -11);
    if (has_b) builder.token("b", TokenKind::normal, -12);
    builder.token("ab", TokenKind::normal, -1);
    const auto written = write_hf_tokenizer(builder.metadata());
    ASSERT_TRUE(written.ok()) << written.error().to_string();
    EXPECT_EQ(written->is_same, has_b);
  }
}

// Of two joins with the same score SentencePiece takes the left one, and of merges the first
// counts.
TEST(TokenizerJsonWriter, TextsShowWhatMergesDoNotSay) {
  for (const bool is_left_first : {true, false}) {
    auto builder = sentencepiece_start();
    builder.token(std::string(kSpaceMark), TokenKind::normal, -10);
    builder.token(is_left_first ? "ca" : "as", TokenKind::normal, -1);  // of "snake_case"
    builder.token(is_left_first ? "as" : "ca", TokenKind::normal, -1);
    for (const char* piece : {"c", "a", "s"}) builder.token(piece, TokenKind::normal, -11);
    const auto written = write_hf_tokenizer(builder.metadata());
    ASSERT_TRUE(written.ok()) << written.error().to_string();
    EXPECT_EQ(written->is_same, is_left_first);
  }
}

// Vocabularies of published models: GGUF to tokenizer.json, and back.
TEST(TokenizerJsonWriter, ReferenceVocabulariesGiveTheSameIds) {
  constexpr const char* kMore[] = {
      "The wheel  turned 12 345 times.\n\n\tIt's DONE, isn't it?",
      "caf\xC3\xA9 na\xC3\xAFve \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80  ",
      "def f(x):\n    return x**2  # foo_bar", "   three", "<s>a</s> b"};
  size_t num_checked = 0;
  for (const auto& path : conformance::files("tokenizers", ".gguf")) {
    const auto checkpoint = open_checkpoint(path.string());
    ASSERT_TRUE(checkpoint.ok());
    const auto before = make_tokenizer((*checkpoint)->metadata(), {});
    ASSERT_TRUE(before.ok());
    const auto written = write_hf_tokenizer((*checkpoint)->metadata());
    if (!written.ok() || !written->is_same) continue;  // other kinds
    ++num_checked;
    const auto read = read_tokenizer_json(
        {.tokenizer = written->tokenizer, .tokenizer_config = written->config}, {}, "here");
    ASSERT_TRUE(read.ok()) << path << read.error().to_string();
    Metadata metadata;
    std::deque<std::string> kept;
    ASSERT_TRUE(put_gguf_vocabulary(**read, metadata, kept).ok()) << path;
    const auto back = make_tokenizer(metadata, {});
    ASSERT_TRUE(back.ok()) << path << back.error().to_string();
    for (const char* text : kMore) {
      for (const bool parse : {false, true}) {
        const EncodeOptions options = {.add_special = true, .parse_special = parse};
        const auto expected = (*before)->encode(text, options).value();
        EXPECT_EQ((*read)->encode(text, options).value(), expected) << path << text;
        EXPECT_EQ((*back)->encode(text, options).value(), expected) << path << text;
        EXPECT_EQ((*read)->decode(expected, true), (*before)->decode(expected, true)) << path;
      }
    }
  }
  if (num_checked == 0) GTEST_SKIP() << "no reference data";
  EXPECT_GT(num_checked, 5U);
}

TEST(TokenizerJsonWriter, EveryKnownPreTokenizerIsRecognised) {
  size_t num_known = 0;
  for (const PreTokenizerName& name : known_pre_tokenizers()) {
    const auto steps = pre_tokenizer_json(name.rules);
    if (!steps) continue;
    ++num_known;
    const auto found = recognise_pre_tokenizer(nlohmann::json(*steps));
    ASSERT_TRUE(found.ok()) << name.name << ": " << found.error().to_string();
    EXPECT_EQ(found->rules, name.rules) << name.name;
  }
  EXPECT_GT(num_known, 7U);
}

TEST(TokenizerJsonWriter, TheConfigHasTheTemplate) {
  VocabularyBuilder builder("gpt2");
  builder.byte_level_alphabet();
  builder.set_text("tokenizer.ggml.pre", "gpt-2");
  builder.set_text("tokenizer.chat_template", "{{ messages }}");
  const auto written = write_hf_tokenizer(builder.metadata());
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(nlohmann::json::parse(written->config)["chat_template"], "{{ messages }}");
}

TEST(TokenizerJsonWriter, OtherKindsAreRefused) {
  VocabularyBuilder builder("bert");
  builder.token("[UNK]", TokenKind::unknown);
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.add_bos_token", false);
  builder.set("tokenizer.ggml.add_eos_token", false);
  const auto written = write_hf_tokenizer(builder.metadata());
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().to_string().find("only BPE"), std::string::npos);
}

}  // namespace
}  // namespace headrace::text
