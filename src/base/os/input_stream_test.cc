#include "base/os/input_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/os/test_file.h"

namespace headrace {
namespace {

using test::write_file;

std::vector<std::string> lines_of(const std::string& text) {
  auto stream = InputStream::open(write_file("headrace_lines", text));
  std::vector<std::string> lines;
  std::string line;
  for (;;) {
    const auto more = stream->read_line(line);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) return lines;
    lines.push_back(line);
  }
}

/// Puts another file on a descriptor, or closes it, for as long as it lives.
class Redirected {
 public:
  Redirected(int fd, const char* path) : fd_(fd), saved_(::fcntl(fd, F_DUPFD_CLOEXEC, 10)) {
    ::close(fd);
    if (path == nullptr) return;
    const int opened = ::open(path, O_RDONLY);
    if (opened == fd) return;
    ::dup2(opened, fd);
    ::close(opened);
  }
  ~Redirected() {
    ::dup2(saved_, fd_);
    ::close(saved_);
  }

 private:
  int fd_;
  int saved_;
};

TEST(InputStream, Lines) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("one\n\ntwo\r\nthree"), (Lines{"one", "", "two", "three"}));
  EXPECT_EQ(lines_of("\n"), Lines{""});
  // Longer than what is read at a time.
  const std::string longer(100000, 'x');
  EXPECT_EQ(lines_of(longer + "\n" + longer), (Lines{longer, longer}));
}

TEST(InputStream, LongLinesAreCutAndTheNextIsWhole) {
  using Line = InputStream::Line;
  const std::string longer(100000, 'x');
  auto stream = InputStream::open(
      write_file("headrace_long_lines", "12345\r\n" + longer + "\n1234567\n\nend"));
  ASSERT_TRUE(stream.ok());
  std::string line;
  EXPECT_EQ(*stream->read_line(line, 6), Line::whole);
  EXPECT_EQ(line, "12345");
  EXPECT_EQ(stream->line_bytes(), 7u);
  EXPECT_EQ(*stream->read_line(line, 6), Line::too_long);
  EXPECT_EQ(line, "xxxxxx");
  EXPECT_LT(line.capacity(), 1000u);
  EXPECT_EQ(stream->line_bytes(), 7u + 100001);
  EXPECT_EQ(*stream->read_line(line, 6), Line::too_long);
  EXPECT_EQ(*stream->read_line(line, 6), Line::whole);
  EXPECT_EQ(line, "");
  EXPECT_EQ(*stream->read_line(line, 3), Line::unended);
  EXPECT_EQ(line, "end");
  EXPECT_EQ(*stream->read_line(line, 3), Line::none);
}

TEST(InputStream, BadPaths) {
  EXPECT_EQ(InputStream::open("/no/such/file").error().code, ErrorCode::not_found);
  const auto folder = InputStream::open(::testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::io_error);
  EXPECT_NE(folder.error().message.find("directory"), std::string::npos);
  EXPECT_FALSE(folder.error().hint.empty());
}

TEST(InputStream, AFailedReadIsNotTheEnd) {
  auto stream = InputStream::open("/proc/self/mem");  // nothing is mapped at 0
  if (!stream.ok()) GTEST_SKIP() << stream.error().to_string();
  std::string buffer(100, '\0');
  const auto count = stream->read(buffer);
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().code, ErrorCode::io_error);
  std::string line;
  EXPECT_FALSE(stream->read_line(line).ok());
}

TEST(InputStream, StandardInputThatCannotBeRead) {
  std::string buffer(100, '\0');
  {
    const Redirected folder(STDIN_FILENO, "/");
    const auto count = InputStream::standard_input().read(buffer);
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.error().where, "standard input");
    EXPECT_NE(count.error().message.find("directory"), std::string::npos);
  }
  const Redirected nothing(STDIN_FILENO, nullptr);
  const auto count = InputStream::standard_input().read(buffer);
  ASSERT_FALSE(count.ok());
  EXPECT_NE(count.error().message.find("closed"), std::string::npos);
}

TEST(ReadSmallFile, TakesAllOrNothing) {
  const std::string path = testing::TempDir() + "small_file_test";
  const std::string text = "a\r\nb\n" + std::string(9000, 'x') + '\0';
  std::ofstream(path, std::ios::binary) << text;
  const auto whole = read_small_file(path, text.size());
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  EXPECT_EQ(*whole, text);
  const auto longer = read_small_file(path, text.size() - 1);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, ErrorCode::out_of_range);
  EXPECT_EQ(longer.error().where, path);
  std::remove(path.c_str());
  EXPECT_FALSE(read_small_file(path, 10).ok());
}

TEST(StandardDescriptors, WhatIsClosedIsFilledAndFails) {
  const Redirected input(STDIN_FILENO, nullptr);
  const Redirected output(STDOUT_FILENO, nullptr);
  fill_standard_descriptors();
  const int next = ::open("/dev/null", O_RDONLY);
  char byte = 0;
  const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
  const int read_fault = errno;
  const ssize_t put = ::write(STDOUT_FILENO, &byte, 1);
  const int write_fault = errno;
  ::close(next);
  EXPECT_GT(next, STDERR_FILENO);
  EXPECT_EQ(got, -1);
  EXPECT_EQ(read_fault, EBADF);
  EXPECT_EQ(put, -1);
  EXPECT_EQ(write_fault, EBADF);
}

}  // namespace
}  // namespace headrace
