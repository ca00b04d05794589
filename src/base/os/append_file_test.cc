#include "base/os/append_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/os/signals.h"

namespace headrace {
namespace {

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string fresh(const std::string& name) {
  const std::string path = ::testing::TempDir() + name;
  std::filesystem::remove(path);
  return path;
}

TEST(AppendFile, WritesBehindWhatIsThere) {
  const std::string path = fresh("headrace_append");
  {
    auto file = AppendFile::open(path);
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file->is_regular());
    ASSERT_TRUE(file->append("one\ntwo\nthr").ok());
  }
  auto file = AppendFile::open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->truncate(8).ok());
  ASSERT_TRUE(file->append("three\n").ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(read_all(path), "one\ntwo\nthree\n");
}

TEST(AppendFile, AFailedPieceLeavesNothing) {
  const std::string path = fresh("headrace_append_limit");
  ignore_file_size_signal();
  auto file = AppendFile::open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append("whole\n").ok());
  rlimit saved{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &saved), 0);
  rlimit small = saved;
  small.rlim_cur = 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = file->append("does not fit\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &saved), 0);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(read_all(path), "whole\n");
}

TEST(AppendFile, DevicesAndBadPaths) {
  auto device = AppendFile::open("/dev/null");
  ASSERT_TRUE(device.ok());
  EXPECT_FALSE(device->is_regular());
  EXPECT_TRUE(device->append("gone").ok());
  EXPECT_TRUE(device->sync().ok());
  auto full = AppendFile::open("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->append("x").error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(AppendFile::open("/no/such/folder/file").error().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace headrace
