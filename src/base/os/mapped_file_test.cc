#include "base/os/mapped_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/os/test_file.h"

namespace headrace {
namespace {

using test::write_file;

TEST(MappedFile, MapsTheBytesAndKeepsThemWhenMoved) {
  auto opened = MappedFile::open(write_file("headrace_mapped", "hello"));
  ASSERT_TRUE(opened.ok());
  MappedFile file = std::move(opened).value();
  const std::byte* before = file.bytes().data();
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().data(), before);
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
  moved.will_need(moved.bytes().data(), 5);
  moved.release(moved.bytes().data(), 5);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
}

TEST(MappedFile, EachBadPathHasItsOwnError) {
  EXPECT_EQ(MappedFile::open("/no/such/file").error().code, ErrorCode::not_found);
  const auto directory = MappedFile::open(::testing::TempDir());
  EXPECT_EQ(directory.error().code, ErrorCode::io_error);
  EXPECT_NE(directory.error().message.find("directory"), std::string::npos);
  EXPECT_EQ(MappedFile::open(write_file("headrace_empty", "")).error().code,
            ErrorCode::corrupt_data);
  const auto device = MappedFile::open("/dev/null");
  EXPECT_EQ(device.error().code, ErrorCode::io_error);
  EXPECT_FALSE(device.error().hint.empty());
}

TEST(MappedFile, WhatAFileLosesReadsAsZerosAndIsAnError) {
  const std::string path = write_file("headrace_cut", std::string(3 << 16, 'x'));
  auto opened = MappedFile::open(path);
  auto other = MappedFile::open(write_file("headrace_whole", std::string(3 << 16, 'y')));
  ASSERT_TRUE(opened.ok() && other.ok());
  const MappedFile file = std::move(opened).value();
  std::filesystem::resize_file(path, 1 << 16);
  const auto* bytes = reinterpret_cast<const volatile char*>(file.bytes().data());
  EXPECT_EQ(bytes[100], 'x');
  EXPECT_TRUE(file.check_whole().ok());
  EXPECT_EQ(bytes[2 << 16], 0);
  EXPECT_EQ(bytes[(3 << 16) - 1], 0);
  const auto result = file.check_whole();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::corrupt_data);
  EXPECT_EQ(result.error().where, path);
  EXPECT_EQ(reinterpret_cast<const volatile char*>(other->bytes().data())[2 << 16], 'y');
  EXPECT_TRUE(other->check_whole().ok());
}

TEST(MappedFile, NoticesThatItsFileWasCutOrWritten) {
  const std::string path = write_file("headrace_changed", std::string(3 << 16, 'x'));
  const auto open = [&] { return std::move(MappedFile::open(path).value()); };
  {
    // Cut within the last page: no page is lost, so only the size tells.
    const MappedFile file = open();
    EXPECT_TRUE(file.check_unchanged().ok());
    std::filesystem::resize_file(path, (3 << 16) - 1);
    EXPECT_TRUE(file.check_whole().ok());
    ASSERT_FALSE(file.check_unchanged().ok());
    EXPECT_NE(file.check_unchanged().error().message.find("shorter"), std::string::npos);
  }
  {
    // Cut, and grown again.
    const MappedFile file = open();
    const auto written = std::filesystem::last_write_time(path);
    std::filesystem::resize_file(path, 10);
    std::filesystem::resize_file(path, (3 << 16) - 1);
    std::filesystem::last_write_time(path, written + std::chrono::seconds(1));
    ASSERT_FALSE(file.check_unchanged().ok());
    EXPECT_EQ(file.check_unchanged().error().code, ErrorCode::corrupt_data);
    EXPECT_NE(file.check_unchanged().error().message.find("written"), std::string::npos);
  }
  {
    // Another file under its name, and its name gone: the file itself is what it was.
    const MappedFile file = open();
    std::filesystem::rename(write_file("headrace_other", "other"), path);
    EXPECT_TRUE(file.check_unchanged().ok());
    std::filesystem::remove(path);
    EXPECT_TRUE(file.check_unchanged().ok());
    EXPECT_EQ(static_cast<char>(file.bytes()[100]), 0);
  }
}

TEST(MappedFileDeathTest, AnotherBusErrorEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto file = MappedFile::open(write_file("headrace_guarded", "guarded"));
        std::raise(SIGBUS);
      },
      "");
}

}  // namespace
}  // namespace headrace
