#include "base/os/mapped_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

namespace headrace {
namespace {

std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

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

}  // namespace
}  // namespace headrace
