// SentencePiece models against what PyPI sentencepiece makes of them: the files of
// tools/make_tokenizer_fixture.py.
#include "text/hf/sentencepiece.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/test_vocabulary.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<TokenId>;

json read_fixture(const fs::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

std::shared_ptr<const Tokenizer> build_fixture(const json& data) {
  const std::string bytes = decode_base64(data["model"].get<std::string>()).value();
  auto model = read_sentencepiece(bytes);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  HfFiles files;
  files.tokenizer_config = R"({"add_bos_token": false})";
  auto made = build_sentencepiece(std::move(*model), files, "tokenizer.model");
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *made;
}

TEST(SentencePiece, EncodesAndDecodesAsTheLibrary) {
  size_t num_models = 0;
  for (const auto& entry :
       fs::directory_iterator(HEADRACE_SOURCE_DIR "/tests/golden/tokenizers/sentencepiece")) {
    SCOPED_TRACE(entry.path().filename().string());
    ++num_models;
    const json data = read_fixture(entry.path());
    const auto tokenizer = build_fixture(data);
    for (const json& one : data["cases"]) {
      const auto text = one[0].get<std::string>();
      const auto wanted = one[1].get<Ids>();
      const auto ids = tokenizer->encode(text, {.add_special = false, .parse_special = false});
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*ids, wanted) << one[0].dump();
      EXPECT_EQ(tokenizer->decode(wanted, true), one[2].get<std::string>()) << one[0].dump();
    }
  }
  EXPECT_EQ(num_models, 3U);
}

TEST(SentencePiece, SpecialTokensComeFromTheModelOrTheConfig) {
  const json data =
      read_fixture(HEADRACE_SOURCE_DIR "/tests/golden/tokenizers/sentencepiece/bpe-bytes.json");
  const std::string bytes = decode_base64(data["model"].get<std::string>()).value();
  HfFiles files;
  const auto plain = build_sentencepiece(read_sentencepiece(bytes).value(), files, "m").value();
  EXPECT_TRUE(plain->special().add_bos);
  EXPECT_EQ(plain->special().bos, 1);
  EXPECT_EQ(plain->special().eos, 2);
  EXPECT_EQ(plain->encode("", {}).value(), (Ids{1}));
  files.tokenizer_config = R"({"add_bos_token": false, "add_eos_token": true})";
  files.added_tokens = R"({"<new>": 700})";
  const auto other = build_sentencepiece(read_sentencepiece(bytes).value(), files, "m").value();
  EXPECT_EQ(other->find("<new>"), 700);
  EXPECT_EQ(other->encode("<new>", {}).value(), (Ids{700, 2}));
  EXPECT_FALSE(check_same_tokenizer(*plain, "a", *other, "b").ok());
}

// A tie goes to the longer piece at the left, and a text of spaces has no tokens.
TEST(SentencePiece, UnigramInGguf) {
  VocabularyBuilder builder("t5");
  builder.token("<pad>", TokenKind::control);
  builder.token("</s>", TokenKind::control);
  builder.token("<unk>", TokenKind::unknown);
  builder.token("\xE2\x96\x81", TokenKind::normal, -2);
  builder.token("!", TokenKind::normal, -3);
  builder.token("!!", TokenKind::normal, -6);
  builder.token("!!!!!", TokenKind::normal, -9);
  builder.token(
      "\xE2\x96\x81"
      "a",
      TokenKind::normal, -4);
  builder.set("tokenizer.ggml.eos_token_id", int64_t{1});
  builder.set("tokenizer.ggml.unknown_token_id", int64_t{2});
  builder.set("tokenizer.ggml.remove_extra_whitespaces", true);
  const auto t = make_tokenizer(builder.metadata(), {});
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ((*t)->encode("!!!!!!", {.add_special = false, .parse_special = false}).value(),
            (Ids{3, 4, 6}));
  EXPECT_EQ((*t)->encode(" ", {.add_special = false, .parse_special = false}).value(), Ids{});
  EXPECT_EQ((*t)->encode(" a  a ", {}).value(), (Ids{7, 7, 1}));
  EXPECT_EQ((*t)->encode("q", {}).value(), (Ids{3, 2, 1}));
}

}  // namespace
}  // namespace headrace::text
