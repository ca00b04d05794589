#include "text/hf_vocabulary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/base_tokenizer.h"
#include "text/test_encode.h"

namespace headrace::text {
namespace {

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
  HEADRACE_ASSIGN(Vocabulary vocabulary, read_hf_vocabulary({text, config, ""}, options));
  return build_tokenizer(std::move(vocabulary), "tokenizer.json");
}

TEST(HfVocabulary, ReadsMergesOfBothForms) {
  const auto t = build(tokenizer_json());
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ(encode(**t, "help", kParsed), (Pieces{"hel", "p"}));
}

TEST(HfVocabulary, AddedTokensTakeTheSpaceBesideThem) {
  const auto t = build(tokenizer_json()).value();
  EXPECT_EQ(encode(*t, "a <r> \n b", kParsed), (Pieces{"a", "\xC4\xA0", "<r>", "b"}));
  EXPECT_EQ(encode(*t, "a \xE3\x80\x80<l> b", kParsed), (Pieces{"a", "<l>", "\xC4\xA0", "b"}));
  EXPECT_EQ(encode(*t, " <s> ", kParsed), (Pieces{"\xC4\xA0", "<s>", "\xC4\xA0"}));
  EXPECT_EQ(encode(*t, "hello,hellos _hello", kParsed),
            (Pieces{"hello", ",", "hel", "l", "o", "s", "\xC4\xA0", "_", "hel", "l", "o"}));
  EXPECT_EQ(encode(*t, "½hello²", kParsed).size(), 5U);  // fractions are no word characters
}

// What Hugging Face tokenizers 0.23 makes of these.
TEST(HfVocabulary, AddedTokensThatMeet) {
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

TEST(HfVocabulary, SpecialTokensFromConfigAndTemplate) {
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

TEST(HfVocabulary, NormalisesWhereTheFileSaysSo) {
  json root = tokenizer_json();
  root["normalizer"] = {{"type", "NFC"}};
  const auto t = build(root).value();
  EXPECT_EQ(t->decode(t->encode("e\xCC\x81", {}).value(), false), "\xC3\xA9");
  EXPECT_NE(t->fingerprint(), build(tokenizer_json()).value()->fingerprint());
}

TEST(HfVocabulary, KnowsThePublishedPatterns) {
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
  const auto unknown = build(root);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::unsupported);
  EXPECT_NE(unknown.error().to_string().find("\\p{Han}+"), std::string::npos);
  EXPECT_EQ(build(root, "", {.pre = "qwen2"}).value()->description(), "byte-level BPE (qwen2)");
}

TEST(HfVocabulary, WhatIsWrongIsNamed) {
  const auto expect_error = [](const json& root, std::string_view part) {
    const auto made = build(root);
    ASSERT_FALSE(made.ok()) << part;
    EXPECT_NE(made.error().to_string().find(part), std::string::npos) << made.error().to_string();
  };
  json root = tokenizer_json();
  root["model"]["type"] = "Unigram";
  expect_error(root, "model.type");
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
  root["model"]["byte_fallback"] = true;
  expect_error(root, "byte_fallback");
  root = tokenizer_json();
  root["normalizer"] = {{"type", "Lowercase"}};
  expect_error(root, "Lowercase");
  root = tokenizer_json();
  root["added_tokens"][0].erase("id");
  expect_error(root, "added_tokens");
  root["added_tokens"] = {1, 2};
  expect_error(root, "added_tokens");
}

TEST(HfVocabulary, RefusesDepthAndNonsense) {
  for (const std::string& text : {std::string(200000, '['), std::string("{\"a\":"),
                                  std::string("[]"), std::string("\xFF"), std::string()}) {
    EXPECT_FALSE(read_hf_vocabulary({text, "", ""}, {}).ok());
  }
}

TEST(HfVocabulary, AMissingDirectoryIsNotFound) {
  const auto made = open_hf_tokenizer("/nowhere/at/all", {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace headrace::text
