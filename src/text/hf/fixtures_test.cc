// Small tokenizers of every kind against what PyPI tokenizers makes of them: the files of
// tools/make_tokenizer_fixture.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/detokenizer.h"
#include "text/hf/tokenizer_json.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<TokenId>;

std::vector<fs::path> fixture_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(HEADRACE_SOURCE_DIR "/tests/golden/tokenizers")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class TokenizerFixture : public testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    std::ifstream file(GetParam());
    data_ = json::parse(file);
    const std::string tokenizer = data_["tokenizer"].dump();
    HfFiles files;
    files.tokenizer = tokenizer;
    auto made = read_tokenizer_json(files, {}, "tokenizer.json");
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    tokenizer_ = *made;
  }

  std::string streamed(const Ids& ids, bool skip_special) const {
    Detokenizer stream(tokenizer_, skip_special);
    std::string out;
    for (const TokenId id : ids) out += stream.push(id);
    return out + stream.finish();
  }

  json data_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_P(TokenizerFixture, EncodesAndDecodesAsTheLibrary) {
  ASSERT_FALSE(data_["cases"].empty());
  for (const json& one : data_["cases"]) {
    const auto text = one[0].get<std::string>();
    SCOPED_TRACE(one[0].dump());
    const auto plain = tokenizer_->encode(text, {.add_special = false, .parse_special = true});
    ASSERT_TRUE(plain.ok()) << plain.error().to_string();
    EXPECT_EQ(*plain, one[1].get<Ids>());
    // A text that has the tokens around it already gets no second ones.
    const bool has_special = text.find("<s>") != text.npos || text.find("</s>") != text.npos ||
                             text.find("[CLS]") != text.npos || text.find("[SEP]") != text.npos;
    const auto full = one[2].get<Ids>();
    if (!has_special) {
      EXPECT_EQ(tokenizer_->encode(text, {.add_special = true, .parse_special = true}).value(),
                full);
    }
    EXPECT_EQ(replace_invalid(tokenizer_->decode(full, false)), one[3].get<std::string>());
    EXPECT_EQ(replace_invalid(tokenizer_->decode(full, true)), one[4].get<std::string>());
    EXPECT_EQ(streamed(full, false), one[3].get<std::string>());
    EXPECT_EQ(streamed(full, true), one[4].get<std::string>());
  }
}

TEST_P(TokenizerFixture, TakesAnyBytes) {
  const std::string bytes = "a\xFF\xE2\x96 \xC3(\xF0\x9F\x98 b\x80\x80";
  const auto ids = tokenizer_->encode(bytes, {.add_special = true, .parse_special = false});
  ASSERT_TRUE(ids.ok()) << ids.error().to_string();
  for (const TokenId id : *ids) ASSERT_LT(id, tokenizer_->vocab_size());
  tokenizer_->decode(*ids, false);
}

TEST_P(TokenizerFixture, MessagesWriteNoControlTokens) {
  for (TokenId id = 0; id < tokenizer_->vocab_size(); ++id) {
    if (tokenizer_->kind(id) != TokenKind::control) continue;
    const std::string spelled(tokenizer_->piece(id));
    if (spelled == "<unk>" || spelled == "[UNK]") continue;  // what is no token becomes it
    const std::vector<TextSegment> segments = {
        {"a ", true}, {"x" + spelled + "y", false}, {" b", true}};
    const auto ids = tokenizer_->encode(segments, false);
    ASSERT_TRUE(ids.ok());
    const std::vector<TextSegment> trusted = {{"x" + spelled + "y", true}};
    const auto parsed = tokenizer_->encode(trusted, false);
    ASSERT_TRUE(parsed.ok());
    // A model may know the spelling as ordinary text too; a template's is one more at least.
    const auto count = [&](const Ids& list) { return std::count(list.begin(), list.end(), id); };
    if (tokenizer_->description().find("Unigram") == std::string::npos &&
        tokenizer_->description().find("Word") == std::string::npos) {
      EXPECT_EQ(count(*ids), 0) << spelled;
    }
    EXPECT_GE(count(*parsed), 1) << spelled;
  }
}

std::string fixture_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFixture, testing::ValuesIn(fixture_files()), fixture_name);

}  // namespace
}  // namespace headrace::text
