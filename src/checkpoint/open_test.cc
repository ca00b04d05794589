// What open_checkpoint says about files that are no model, and about split models.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_split.h"
#include "tests/gguf_builder.h"

namespace headrace {
namespace {

using test::GgufBuilder;

class OpenTest : public ::testing::Test {
 protected:
  OpenTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("headrace_open_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~OpenTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  /// Expects one line that begins with the path and has these words and a way out.
  void expect_error(const std::string& file, ErrorCode code, const std::string& words) const {
    const auto result = open_checkpoint(file);
    ASSERT_FALSE(result.ok()) << file;
    const std::string text = result.error().to_string();
    EXPECT_EQ(result.error().code, code) << text;
    EXPECT_EQ(text.rfind(file, 0), 0u) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_FALSE(result.error().hint.empty()) << text;
  }

  std::filesystem::path folder_;
};

TEST_F(OpenTest, AGgufFileShowsItsContents) {
  GgufBuilder builder(2);
  builder.add("general.architecture", "test").add_f32("one", {1}, std::vector<float>{1});
  builder.add_f32("a", {1}, std::vector<float>{2});
  const std::string file = write("m.gguf", builder.build());
  const auto opened = open_checkpoint(file);
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.path(), file);
  EXPECT_EQ(checkpoint.format_name(), "GGUF v2");
  EXPECT_EQ(checkpoint.file_bytes(), std::filesystem::file_size(file));
  EXPECT_EQ(**checkpoint.metadata().get_string("general.architecture"), "test");
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.find("one"), &checkpoint.tensors()[0]);
  EXPECT_EQ(checkpoint.find("a"), &checkpoint.tensors()[1]);
  EXPECT_EQ(checkpoint.find("b"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  checkpoint.release(checkpoint.tensors()[0]);
  EXPECT_EQ(checkpoint.tensors()[0].data.size(), 4u);
}

TEST_F(OpenTest, AVocabularyFileWithoutTensorsOpens) {
  const std::vector<std::string> tokens = {"a", "b"};
  const std::string file =
      write("v.gguf", GgufBuilder().add("tokenizer.ggml.tokens", tokens).build());
  const auto opened = open_checkpoint(file);
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EXPECT_TRUE((*opened)->tensors().empty());
  EXPECT_EQ((**(*opened)->metadata().get_strings("tokenizer.ggml.tokens"))[1], "b");
}

TEST_F(OpenTest, EveryWrongKindOfFileHasItsOwnError) {
  expect_error(path("none.gguf"), ErrorCode::not_found, "no such file");
  expect_error(folder_.string(), ErrorCode::io_error, "found a directory");
  expect_error(write("empty.gguf", ""), ErrorCode::corrupt_data, "the file is empty");
  expect_error(write("a.txt", "some words\n"), ErrorCode::corrupt_data, "found a text file");
  expect_error(write("short", "GG"), ErrorCode::corrupt_data, "found a text file");
  expect_error(write("x.bin", std::string("\0\1\2\3", 4)), ErrorCode::corrupt_data,
               "found a file of another kind");
  expect_error(write("m.safetensors", std::string("\x10\0\0\0\0\0\0\0{\"a\":1}         ", 24)),
               ErrorCode::unsupported, "found a safetensors file");
  expect_error(write("lfs", "version https://git-lfs.github.com/spec/v1\noid"),
               ErrorCode::corrupt_data, "Git LFS pointer");
  expect_error(write("page", "<!DOCTYPE html><html>"), ErrorCode::corrupt_data, "an HTML page");
  expect_error(write("m.pt", std::string("PK\x03\x04\0\0", 6)), ErrorCode::corrupt_data, "PyTorch");
  expect_error(write("old", std::string("tjgg\1\0\0\0", 8)), ErrorCode::corrupt_data,
               "from before GGUF");
}

TEST_F(OpenTest, AnErrorInsideTheFileNamesItToo) {
  const std::string file = write("bad.gguf", GgufBuilder().add_raw("k", 7, "\x09").build());
  const auto result = open_checkpoint(file);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().to_string(),
            file + ": key 'k' at byte 24: byte 37: a bool must be 0 or 1, found 9");
}

GgufBuilder part(uint16_t number, uint16_t count, int32_t num_tensors) {
  GgufBuilder builder;
  builder.add("split.no", number).add("split.count", count);
  builder.add("split.tensors.count", num_tensors);
  return builder;
}

class SplitTest : public OpenTest {
 protected:
  // Three parts: one tensor, none, two.
  void write_set() {
    const std::vector<float> one = {1}, two = {2}, three = {3};
    parts_.push_back(part(0, 3, 3).add("general.name", "set").add_f32("a", {1}, one));
    parts_.push_back(part(1, 3, 3));
    parts_.push_back(part(2, 3, 3).add_f32("b", {1}, two).add_f32("c", {1}, three));
    for (int i = 0; i < 3; ++i) write(name(i + 1), parts_[static_cast<size_t>(i)].build());
  }
  static std::string name(int number) {
    return "m-0000" + std::to_string(number) + "-of-00003.gguf";
  }
  std::string error_text() const {
    const auto result = open_checkpoint(path(name(1)));
    return result.ok() ? "no error" : result.error().to_string();
  }
  std::vector<GgufBuilder> parts_;
};

TEST_F(SplitTest, AllPartsBecomeOneCheckpoint) {
  write_set();
  const auto opened = open_checkpoint(path(name(1)));
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.path(), path(name(1)));
  EXPECT_EQ(**checkpoint.metadata().get_string("general.name"), "set");
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  uint64_t bytes = 0;
  for (int i = 1; i <= 3; ++i) bytes += std::filesystem::file_size(path(name(i)));
  EXPECT_EQ(checkpoint.file_bytes(), bytes);
  float value = 0;
  ASSERT_NE(checkpoint.find("c"), nullptr);
  std::memcpy(&value, checkpoint.find("c")->data.data(), sizeof value);
  EXPECT_EQ(value, 3.0f);
  checkpoint.release(*checkpoint.find("c"));
}

TEST_F(SplitTest, AMissingPartIsNamed) {
  write_set();
  std::filesystem::remove(path(name(2)));
  const auto result = open_checkpoint(path(name(1)));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
  EXPECT_EQ(result.error().to_string(),
            path(name(2)) +
                ": part 2 of 3 of a split model: no such file (all parts must lie in one folder)");
}

TEST_F(SplitTest, OpeningAnotherPartNamesTheFirst) {
  write_set();
  const auto result = open_checkpoint(path(name(3)));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().to_string(),
            path(name(3)) + ": this is part 3 of 3 of a split model, expected the first (use " +
                path(name(1)) + ")");
}

TEST_F(SplitTest, PartsThatDisagreeAreRefused) {
  write_set();
  write(name(2), parts_[2].build());
  EXPECT_NE(error_text().find("expected part 2 of 3, but the file says part 3 of 3"),
            std::string::npos);
  write(name(2), GgufBuilder().build());
  EXPECT_NE(error_text().find("but the file says part 1 of 1"), std::string::npos);
  write(name(2), part(1, 3, 3).add_f32("a", {1}, std::vector<float>{1}).build());
  EXPECT_NE(error_text().find("says 3 tensors, but the parts hold 4"), std::string::npos);
  write(name(1), part(0, 3, 4).add_f32("a", {1}, std::vector<float>{1}).build());
  EXPECT_NE(error_text().find("tensor 'a' is in two parts"), std::string::npos);
  write(name(2), "GGUF");
  EXPECT_EQ(error_text().rfind(path(name(2)) + ": byte 4", 0), 0u) << error_text();
}

TEST_F(SplitTest, ARenamedPartIsRefusedWithTheNameItNeeds) {
  write_set();
  std::filesystem::rename(path(name(1)), path("other.gguf"));
  expect_error(path("other.gguf"), ErrorCode::mismatch, "NAME-00001-of-00003.gguf");
}

TEST_F(SplitTest, WrongSplitKeysAreRefused) {
  const std::string file = "m-00001-of-00003.gguf";
  for (const auto& builder : {part(3, 3, 0), GgufBuilder().add("split.count", uint16_t{3}),
                              GgufBuilder().add("split.count", "three"),
                              GgufBuilder().add("split.count", uint32_t{70000})}) {
    const auto result = open_checkpoint(write(file, builder.build()));
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().where.find("key 'split."), std::string::npos);
  }
  EXPECT_TRUE(open_checkpoint(write("one.gguf", part(0, 1, 0).build())).ok());
}

TEST(SplitName, IsTakenApartAndPutTogether) {
  const auto name = parse_split_name("/models/big-00002-of-00010.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "/models/big");
  EXPECT_EQ(name->part, 2);
  EXPECT_EQ(name->num_parts, 10);
  EXPECT_EQ(name->path(10), "/models/big-00010-of-00010.gguf");
  for (const char* other :
       {"", "m.gguf", "m-1-of-3.gguf", "m-00001-of-00003.bin", "00001-of-00003.gguf",
        "m-0000a-of-00003.gguf", "m-00004-of-00003.gguf", "m-00000-of-00003.gguf"}) {
    EXPECT_FALSE(parse_split_name(other).has_value()) << other;
  }
}

}  // namespace
}  // namespace headrace
