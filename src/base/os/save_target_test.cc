#include "base/os/save_target.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace headrace {
namespace {

namespace fs = std::filesystem;

class SaveTarget : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Result<std::string> target(const std::string& name) const {
    return save_target(at(name), "LIST1", "shopping list");
  }
  const fs::path folder_ = fs::path(::testing::TempDir()) / "headrace_save_target";
};

TEST_F(SaveTarget, NothingOrOneOfItsKindIsThere) {
  EXPECT_EQ(*target("new"), at("new"));
  EXPECT_EQ(*save_target("bare name", "LIST1", ""), "bare name");
  std::ofstream(at("old")) << "LIST1 bread";
  EXPECT_EQ(*target("old"), at("old"));
  fs::create_symlink("old", folder_ / "link");
  EXPECT_EQ(*target("link"), fs::canonical(folder_ / "old").string());
}

TEST_F(SaveTarget, AnythingElseIsRefused) {
  std::ofstream(at("notes")) << "LIST";
  std::ofstream(at("empty"));
  fs::create_directory(folder_ / "folder");
  fs::create_symlink("nowhere", folder_ / "dangling");
  for (const char* name : {"notes", "empty", "folder", "dangling"}) {
    const auto refused = target(name);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << name;
    EXPECT_EQ(refused.error().where, at(name));
    EXPECT_FALSE(refused.error().hint.empty());
  }
  EXPECT_EQ(target("notes").error().message, "is there already, and is no shopping list");
  EXPECT_FALSE(save_target("/dev/null", "LIST1", "shopping list").ok());
  EXPECT_EQ(target("no folder/x").error().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace headrace
