#include "base/os/atomic_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/os/signals.h"

namespace headrace {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  const std::string folder_ = ::testing::TempDir() + "headrace_atomic";
  const std::string temporary_ = folder_ + "/part";
  const std::string path_ = folder_ + "/whole";
};

TEST_F(AtomicFileTest, AppearsWithCommitOnly) {
  std::ofstream(path_) << "old";
  {
    auto file = AtomicFile::create(temporary_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(bytes_of("new ")).ok());
    ASSERT_TRUE(file->write(bytes_of("text")).ok());
    EXPECT_EQ(content(path_), "old");
    const AtomicFile moved = std::move(file).value();
  }
  EXPECT_EQ(content(path_), "old");
  EXPECT_EQ(num_files(), 1u);
  auto file = AtomicFile::create(temporary_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write(bytes_of("new text")).ok());
  ASSERT_TRUE(file->commit(path_).ok());
  EXPECT_EQ(content(path_), "new text");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(AtomicFileTest, BesideAFileNothingElseIsTouched) {
  // The names that this process would take first.
  const std::string taken = path_ + "." + std::to_string(::getpid()) + "-";
  std::ofstream(taken + "0.partial") << "mine";
  std::filesystem::create_symlink(path_, taken + "1.partial");
  {
    auto first = AtomicFile::create_beside(path_);
    auto second = AtomicFile::create_beside(path_);
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(second.ok());
    ASSERT_TRUE(first->write(bytes_of("first")).ok());
    ASSERT_TRUE(second->write(bytes_of("second")).ok());
    EXPECT_EQ(num_files(), 4u);
    ASSERT_TRUE(first->commit(path_).ok());
    EXPECT_EQ(content(path_), "first");
  }
  EXPECT_EQ(content(path_), "first");
  EXPECT_EQ(content(taken + "0.partial"), "mine");
  EXPECT_EQ(num_files(), 3u);
  EXPECT_EQ(AtomicFile::create_beside("/no/such/folder/x").error().where, "/no/such/folder/x");
}

TEST_F(AtomicFileTest, AFileForItsOwnerAlone) {
  using std::filesystem::perms;
  std::ofstream(path_) << "for everybody";
  auto file = AtomicFile::create_beside(path_, FileAccess::owner);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit(path_).ok());
  const perms mode = std::filesystem::status(path_).permissions();
  EXPECT_EQ(mode & (perms::group_all | perms::others_all), perms::none);
}

TEST_F(AtomicFileTest, AFullDiskIsAnErrorAndLeavesNothing) {
  ignore_file_size_signal();
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ErrorCode code{};
  {
    auto file = AtomicFile::create(temporary_);
    ASSERT_TRUE(file.ok());
    const auto written = file->write(bytes_of(std::string(5000, 'x')));
    ASSERT_FALSE(written.ok());
    code = written.error().code;
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(code, ErrorCode::resource_exhausted);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(AtomicFileTest, AFolderThatIsNotThere) {
  EXPECT_EQ(AtomicFile::create("/no/such/folder/x").error().code, ErrorCode::io_error);
}

TEST(FreeDisk, IsKnownForFoldersThatAre) {
  const auto free = free_disk_bytes("/");
  ASSERT_TRUE(free.ok());
  EXPECT_LT(*free, uint64_t{1} << 60);
  const auto none = free_disk_bytes("/no/such/folder");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_EQ(none.error().to_string(), "/no/such/folder: there is no such folder (make it first)");
}

TEST(FreeDisk, IsExpectedForFilesThatAreToBe) {
  EXPECT_TRUE(expect_disk_room("/to_be", 0).ok());
  const auto full = expect_disk_room("/to_be", UINT64_MAX);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(full.error().to_string().find("/to_be: needs 17592186044416 MiB"), std::string::npos)
      << full.error().to_string();
  EXPECT_EQ(expect_disk_room("/no/such/folder/file", 0).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace headrace
