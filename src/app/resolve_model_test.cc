// Which models are fetched, and which are only looked for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "app/open_model.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class ResolveModel : public ::testing::Test {
 protected:
  void SetUp() override {
    home_ = fs::path(::testing::TempDir()) / "resolve_model";
    fs::remove_all(home_);
    fs::create_directories(home_ / "models");
    const char* before = std::getenv("HEADRACE_HOME");
    before_ = before != nullptr ? before : "";
    ::setenv("HEADRACE_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("HEADRACE_HOME", before_.c_str(), 1);
    fs::remove_all(home_);
  }

  std::string put(const std::string& file) {
    const fs::path path = home_ / "models" / file;
    std::ofstream(path) << "x";
    return path.string();
  }

  FetchModel counting() {
    return [this](const ModelStore& store, const std::string& name) -> Result<std::string> {
      EXPECT_EQ(store.root(), (home_ / "models").string());
      fetched_ = name;
      return put(name + ".gguf");
    };
  }

  fs::path home_;
  std::string before_;
  std::string fetched_;
};

TEST_F(ResolveModel, TheDefaultModelIsFetchedWhereItIsMissing) {
  const std::string name = ModelStore::default_model().name;
  EXPECT_EQ(resolve_model("").error().code, ErrorCode::not_found);
  const auto path = resolve_or_fetch("", counting());
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(fetched_, name);
  EXPECT_EQ(*resolve_model(""), *path);
  fetched_.clear();
  EXPECT_EQ(*resolve_or_fetch("", counting()), *path);
  EXPECT_EQ(fetched_, "") << "it is there now";
}

TEST_F(ResolveModel, NothingElseIsFetched) {
  const std::string name = ModelStore::default_model().name;
  for (const std::string reference : {name.c_str(), "no-such-model", "no/such/file.gguf"}) {
    const auto path = resolve_or_fetch(reference, counting());
    ASSERT_FALSE(path.ok()) << reference;
    EXPECT_EQ(path.error().code, ErrorCode::not_found);
    EXPECT_NE(path.error().hint, "");
  }
  EXPECT_EQ(fetched_, "");
}

TEST_F(ResolveModel, AFileAndANameInTheStoreAreFound) {
  const std::string mine = put("mine.gguf");
  EXPECT_EQ(*resolve_or_fetch("mine", counting()), mine);
  EXPECT_EQ(*resolve_or_fetch(mine, counting()), mine);
}

TEST_F(ResolveModel, AFailedFetchIsTheAnswer) {
  const auto path = resolve_or_fetch("", [](const ModelStore&, const std::string&) {
    return Result<std::string>(Error{ErrorCode::io_error, "no network", "", ""});
  });
  EXPECT_EQ(path.error().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace headrace
