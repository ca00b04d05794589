// Hugging Face directories: which files count, and paths that leave the directory.
#include "checkpoint/hf_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/safetensors_builder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using test::SafetensorsBuilder;

class HfDirectoryTest : public testing::Test {
 protected:
  HfDirectoryTest() {
    fs::remove_all(root_);
    fs::create_directories(folder_);
  }
  ~HfDirectoryTest() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  void write_config() const { write(folder_ / "config.json", "{}"); }
  static std::string tensor_file(const std::string& name) {
    return SafetensorsBuilder().add_f32(name, {1}, {1}).build();
  }
  void expect_opening_error(ErrorCode code, const std::string& part) const {
    const auto opened = HfDirectory::open(folder_.string());
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, code) << opened.error().to_string();
    EXPECT_NE(opened.error().to_string().find(part), std::string::npos)
        << opened.error().to_string();
  }

  fs::path root_ = testing::TempDir() + "hf_directory_test";
  fs::path folder_ = root_ / "model";
};

TEST_F(HfDirectoryTest, OneFile) {
  write_config();
  write(folder_ / "model.safetensors", tensor_file("a"));
  const auto opened = HfDirectory::open(folder_.string() + "/");
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  ASSERT_EQ(opened->tensors().size(), 1U);
  EXPECT_EQ(opened->tensors()[0].name, "a");
  EXPECT_EQ(opened->config(), "{}");
  EXPECT_EQ(opened->generation_config(), "");
}

TEST_F(HfDirectoryTest, TheIndexNamesTheFiles) {
  write_config();
  write(folder_ / "x-1.safetensors", tensor_file("a"));
  write(folder_ / "x-2.safetensors", tensor_file("b"));
  write(folder_ / "model.safetensors", "not looked at");
  write(folder_ / "model.safetensors.index.json",
        R"({"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}})");
  const auto opened = HfDirectory::open(folder_.string());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EXPECT_EQ(opened->tensors().size(), 2U);
  EXPECT_EQ(opened->shards().size(), 2U);
}

TEST_F(HfDirectoryTest, WhatIsMissingIsNamed) {
  expect_opening_error(ErrorCode::not_found, "no config.json");
  write_config();
  expect_opening_error(ErrorCode::not_found, "no model.safetensors");
  write(folder_ / "pytorch_model.bin", "x");
  expect_opening_error(ErrorCode::unsupported, "pytorch_model.bin");
  write(folder_ / "model.safetensors.index.json", R"({"weight_map":{"a":"x.safetensors"}})");
  expect_opening_error(ErrorCode::not_found, "x.safetensors");
}

TEST_F(HfDirectoryTest, AnIndexThatDisagreesWithItsFiles) {
  write_config();
  write(folder_ / "x.safetensors", tensor_file("a"));
  const fs::path index = folder_ / "model.safetensors.index.json";
  write(index, R"({"weight_map":{"b":"x.safetensors"}})");
  expect_opening_error(ErrorCode::mismatch, "tensor 'a', which the index does not name");
  write(index, R"({"weight_map":{"a":"x.safetensors","b":"x.safetensors"}})");
  expect_opening_error(ErrorCode::mismatch, "lacks tensor 'b'");
  for (const char* text : {"", "[]", "{}", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})"}) {
    write(index, text);
    if (*text != '\0') expect_opening_error(ErrorCode::corrupt_data, "index.json");
  }
}

TEST_F(HfDirectoryTest, PathsThatLeaveTheDirectoryAreRefused) {
  write_config();
  write(root_ / "secret.safetensors", tensor_file("a"));
  const fs::path index = folder_ / "model.safetensors.index.json";
  write(index, R"({"weight_map":{"a":"../secret.safetensors"}})");
  expect_opening_error(ErrorCode::invalid_argument, "leads out of the model's directory");
  write(index, R"({"weight_map":{"a":")" + (root_ / "secret.safetensors").string() + R"("}})");
  expect_opening_error(ErrorCode::invalid_argument, "leads out of the model's directory");
  fs::remove(index);
  fs::create_symlink(root_ / "secret.safetensors", folder_ / "model.safetensors");
  expect_opening_error(ErrorCode::invalid_argument, "leads out of the model's directory");
}

TEST_F(HfDirectoryTest, LinksInsideOfHuggingFacesCacheAreFollowed) {
  const fs::path repository = root_ / "models--org--name";
  const fs::path snapshot = repository / "snapshots" / "0123";
  write(repository / "blobs" / "c", "{}");
  write(repository / "blobs" / "w", tensor_file("a"));
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/c", snapshot / "config.json");
  fs::create_symlink("../../blobs/w", snapshot / "model.safetensors");
  const auto opened = HfDirectory::open(snapshot.string());
  EXPECT_TRUE(opened.ok()) << opened.error().to_string();
  write(root_ / "outside", tensor_file("a"));
  fs::remove(snapshot / "model.safetensors");
  fs::create_symlink("../../../outside", snapshot / "model.safetensors");
  EXPECT_FALSE(HfDirectory::open(snapshot.string()).ok());
}

}  // namespace
}  // namespace headrace
