#include "text/hf/tokenizer_json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/base_tokenizer.h"
#include "text/test_encode.h"

namespace headrace::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The byte-level alphabet, "he" and "hel", and one added token of each sort.
json tokenizer_json() {
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[ByteAlphabet::get().spelling(static_cast<uint8_t>(byte))] = byte;
  }
  vocab["he"] = 256;
  vocab["hel"] = 257;
  json root;
  root["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"h e", json{"he", "l"}}}};
  root["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  root["added_tokens"] = {
      {{"id", 258}, {"content", "<s>"}, {"special", true}},
      {{"id", 259}, {"content", "<r>"}, {"special", true}, {"rstrip", true}},
      {{"id", 260}, {"content", "<l>"}, {"special", true}, {"lstrip", true}},
      {{"id", 261}, {"content", "he"}, {"special", false}, {"single_word", true}}};
  root["added_tokens"][3]["content"] = "hello";
  return root;
}

Result<std::shared_ptr<const Tokenizer>> build(const json& root, const std::string& config = "",
                                               const TokenizerOptions& options = {}) {
  const std::string text = root.dump();
  HfFiles files;
  files.tokenizer = text;
  files.tokenizer_config = config;
  return read_tokenizer_json(files, options, "tokenizer.json");
}

TEST(TokenizerJson, ReadsMergesOfBothForms) {
  const auto t = build(tokenizer_json());
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ(encode(**t, "help", kParsed), (Pieces{"hel", "p"}));
}

TEST(TokenizerJson, AddedTokensTakeTheSpaceBesideThem) {
  const auto t = build(tokenizer_json()).value();
  EXPECT_EQ(encode(*t, "a <r> \n b", kParsed), (Pieces{"a", "\xC4\xA0", "<r>", "b"}));
  EXPECT_EQ(encode(*t, "a \xE3\x80\x80<l> b", kParsed), (Pieces{"a", "<l>", "\xC4\xA0", "b"}));
  EXPECT_EQ(encode(*t, " <s> ", kParsed), (Pieces{"\xC4\xA0", "<s>", "\xC4\xA0"}));
  EXPECT_EQ(encode(*t, "hello,hellos _hello", kParsed),
            (Pieces{"hello", ",", "hel", "l", "o", "s", "\xC4\xA0", "_", "hel", "l", "o"}));
  EXPECT_EQ(encode(*t, "½hello²", kParsed).size(), 5U);  // fractions are no word characters
}

// What Hugging Face tokenizers 0.23 makes of these.
TEST(TokenizerJson, AddedTokensThatMeet) {
  const auto added = [](int id, const char* content, const char* rule, bool normalized) {
    json token = {{"id", id}, {"content", content}, {"special", false}, {"normalized", normalized}};
    if (*rule != '\0') token[rule] = true;
    return token;
  };
  json root = tokenizer_json();
  // A refused token is text, also where another one lies in it.
  root["added_tokens"] = {added(258, "<ab>", "single_word", false), added(259, "b>", "", false)};
  EXPECT_EQ(encode(*build(root).value(), "<ab>x<ab>", kParsed),
            (Pieces{"<", "a", "b", ">", "x", "<", "a", "b", ">"}));
  // Tokens that are matched in normalised text come last, and see only the text that is left.
  root["added_tokens"] = {added(258, "<ab>", "single_word", true), added(259, "b>", "", false)};
  EXPECT_EQ(encode(*build(root).value(), "<ab>", kParsed), (Pieces{"<", "a", "b>"}));
  EXPECT_EQ(encode(*build(root).value(), "b><ab", kParsed), (Pieces{"b>", "<", "a", "b"}));
  root["added_tokens"] = {added(258, "ab", "single_word", true), added(259, "xx", "", false)};
  EXPECT_EQ(encode(*build(root).value(), "abxx abq", kParsed),
            (Pieces{"ab", "xx", "\xC4\xA0", "a", "b", "q"}));
  EXPECT_NE(build(root).value()->fingerprint(), build(tokenizer_json()).value()->fingerprint());
  // One that begins inside the white space that another took is found all the same.
  root["added_tokens"] = {added(258, "<r>", "rstrip", false), added(259, "  <s>", "", false),
                          added(260, "\t\t", "rstrip", false)};
  EXPECT_EQ(encode(*build(root).value(), "a<r>   <s>", kParsed), (Pieces{"a", "<r>", "  <s>"}));
  EXPECT_EQ(encode(*build(root).value(), "<r>\t\t\t\t b", kParsed),
            (Pieces{"<r>", "\t\t", "\t\t", "b"}));
}

TEST(TokenizerJson, SpecialTokensFromConfigAndTemplate) {
  json root = tokenizer_json();
  const auto plain = build(root, R"({"bos_token":{"content":"<s>"},"eos_token":"<r>"})").value();
  EXPECT_EQ(plain->special().bos, 258);
  EXPECT_EQ(plain->special().eos, 259);
  EXPECT_FALSE(plain->special().add_bos);
  root["post_processor"] = {{"type", "Sequence"},
                            {"processors",
                             {{{"type", "ByteLevel"}},
                              {{"type", "TemplateProcessing"},
                               {"single",
                                {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}}}}};
  const auto templated = build(root).value();
  EXPECT_EQ(templated->special().bos, 258);
  EXPECT_TRUE(templated->special().add_bos);
  EXPECT_FALSE(templated->special().add_eos);
}

TEST(TokenizerJson, NormalisesWhereTheFileSaysSo) {
  json root = tokenizer_json();
  root["normalizer"] = {{"type", "NFC"}};
  const auto t = build(root).value();
  EXPECT_EQ(t->decode(t->encode("e\xCC\x81", {}).value(), false), "\xC3\xA9");
  EXPECT_NE(t->fingerprint(), build(tokenizer_json()).value()->fingerprint());
}

TEST(TokenizerJson, KnowsThePublishedPatterns) {
  const auto split = [](const std::string& pattern) {
    return json{{"type", "Split"},
                {"pattern", {{"Regex", pattern}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  };
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  json root = tokenizer_json();
  root["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {split(
            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
        bytes}}};
  EXPECT_EQ(build(root).value()->description(), "byte-level BPE (qwen2)");
  root["pre_tokenizer"]["pretokenizers"][0] = split("\\p{Han}+");
  EXPECT_EQ(build(root).value()->description(), "BPE (tokenizer.json)");
  EXPECT_EQ(build(root, "", {.pre = "qwen2"}).value()->description(), "byte-level BPE (qwen2)");
}

TEST(TokenizerJson, WhatIsWrongIsNamed) {
  const auto expect_error = [](const json& root, std::string_view part) {
    const auto made = build(root);
    ASSERT_FALSE(made.ok()) << part;
    EXPECT_NE(made.error().to_string().find(part), std::string::npos) << made.error().to_string();
  };
  json root = tokenizer_json();
  root["model"]["type"] = "Bigram";
  expect_error(root, "model.type");
  root["model"]["type"] = "Unigram";
  expect_error(root, "model.vocab");
  root = tokenizer_json();
  root["model"]["merges"].push_back("q z");
  expect_error(root, "merge 2 'q z'");
  root["model"]["merges"] = 7;
  expect_error(root, "model.merges");
  root = tokenizer_json();
  root["model"]["vocab"]["zz"] = -1;
  expect_error(root, "'zz'");
  root["model"]["vocab"]["zz"] = 4000000000U;
  expect_error(root, "'zz'");
  root["model"]["vocab"]["zz"] = 256;
  expect_error(root, "id 256");
  root["model"]["vocab"] = json::array();
  expect_error(root, "model.vocab");
  root = tokenizer_json();
  root["normalizer"] = {{"type", "Uppercase"}};
  expect_error(root, "normalizer: unknown type \"Uppercase\"");
  root["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}};
  expect_error(root, "the pattern '(a'");
  root = tokenizer_json();
  root["decoder"] = {{"type", "Strip"}, {"content", "ab"}};
  expect_error(root, "decoder.content");
  root = tokenizer_json();
  root["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"[CLS]", 9999}}};
  expect_error(root, "post_processor");
  root = tokenizer_json();
  root["added_tokens"][0].erase("id");
  expect_error(root, "added_tokens");
  root["added_tokens"] = {1, 2};
  expect_error(root, "added_tokens");
}

TEST(TokenizerJson, RefusesDepthAndNonsense) {
  for (const std::string& text : {std::string(200000, '['), std::string("{\"a\":"),
                                  std::string("[]"), std::string("\xFF"), std::string()}) {
    HfFiles files;
    files.tokenizer = text;
    EXPECT_FALSE(read_tokenizer_json(files, {}, "tokenizer.json").ok());
  }
}

TEST(TokenizerJson, TwoTextsHaveTheTemplateOfPairs) {
  json root = tokenizer_json();
  root["normalizer"] = {{"type", "Lowercase"}};
  root["post_processor"] = {
      {"type", "BertProcessing"}, {"cls", {"<s>", 258}}, {"sep", {"<r>", 259}}};
  const auto t = build(root).value();
  const TokenPair pair = t->encode_pair("A", "bc").value();
  EXPECT_EQ(pair.ids,
            (std::vector<TokenId>{258, *t->find("a"), 259, *t->find("b"), *t->find("c"), 259}));
  EXPECT_EQ(pair.types, (std::vector<uint8_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_FALSE(build(tokenizer_json()).value()->encode_pair("a", "b").ok());
}

TEST(TokenizerJson, TheGuardNamesTheFirstStepThatDiffers) {
  json root = tokenizer_json();
  root["normalizer"] = {{"type", "Lowercase"}};
  const auto a = build(root).value();
  root["normalizer"] = {{"type", "NFKC"}};
  const auto b = build(root).value();
  EXPECT_TRUE(check_same_tokenizer(*a, "model", *a, "draft").ok());
  const auto checked = check_same_tokenizer(*a, "model", *b, "draft");
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("'normaliser: Lowercase' vs 'normaliser: NFKC'"),
            std::string::npos)
      << checked.error().message;
}

TEST(TokenizerJson, FilesBesideItAddTokensAndEnds) {
  json root = tokenizer_json();
  const std::string text = root.dump();
  HfFiles files;
  files.tokenizer = text;
  files.tokenizer_config =
      R"({"added_tokens_decoder":{"262":{"content":"<end>","special":true},"258":{"content":"<s>"}}})";
  files.special_tokens_map = R"({"eos_token":{"content":"<end>"},"pad_token":"<r>"})";
  files.generation_config = R"({"eos_token_id":[260,262]})";
  const auto t = read_tokenizer_json(files, {}, "tokenizer.json").value();
  EXPECT_EQ(t->find("<end>"), 262);
  EXPECT_EQ(t->kind(262), TokenKind::control);
  EXPECT_EQ(t->special().eos, 262);
  EXPECT_EQ(t->special().pad, 259);
  EXPECT_EQ(t->special().end_of_generation, (std::vector<TokenId>{260, 262}));
  files.generation_config = R"({"eos_token_id":258})";
  EXPECT_EQ(read_tokenizer_json(files, {}, "t").value()->special().end_of_generation,
            (std::vector<TokenId>{258, 262}));
}

/// A directory with files.
class HfDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = fs::path(base != nullptr ? base : "/tmp") / "hf_directory";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  fs::path folder_;
};

TEST_F(HfDirectoryTest, LinksMayNotLeaveIt) {
  write(folder_ / "outside.json", tokenizer_json().dump());
  fs::create_directories(folder_ / "model");
  fs::create_symlink("../outside.json", folder_ / "model/tokenizer.json");
  const auto made = open_hf_tokenizer((folder_ / "model").string(), {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(made.error().to_string().find("leads out"), std::string::npos);

  // A cache of Hugging Face: links into its blobs are fine.
  write(folder_ / "models--a--b/blobs/abc", tokenizer_json().dump());
  fs::create_directories(folder_ / "models--a--b/snapshots/1");
  fs::create_symlink("../../blobs/abc", folder_ / "models--a--b/snapshots/1/tokenizer.json");
  EXPECT_TRUE(open_hf_tokenizer((folder_ / "models--a--b/snapshots/1").string(), {}).ok());
}

TEST_F(HfDirectoryTest, ChatTemplateOfADirectory) {
  EXPECT_EQ(chat_template_of_directory(folder_.string()).value(), std::nullopt);
  write(folder_ / "tokenizer_config.json",
        R"({"chat_template":[{"name":"tools","template":"T"},{"name":"default","template":"D"}]})");
  EXPECT_EQ(chat_template_of_directory(folder_.string()).value(), "D");
  write(folder_ / "tokenizer_config.json", R"({"chat_template":"S"})");
  EXPECT_EQ(chat_template_of_directory(folder_.string()).value(), "S");
  write(folder_ / "additional_chat_templates/default.jinja", "A");
  EXPECT_EQ(chat_template_of_directory(folder_.string()).value(), "A");
  write(folder_ / "chat_template.jinja", "J");
  EXPECT_EQ(chat_template_of_directory(folder_.string()).value(), "J");
  fs::remove(folder_ / "chat_template.jinja");
  fs::remove_all(folder_ / "additional_chat_templates");
  write(folder_ / "tokenizer_config.json", "{");
  EXPECT_FALSE(chat_template_of_directory(folder_.string()).ok());
}

TEST(TokenizerJson, AMissingDirectoryIsNotFound) {
  const auto made = open_hf_tokenizer("/nowhere/at/all", {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace headrace::text
