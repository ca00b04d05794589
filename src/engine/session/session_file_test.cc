// The session file by itself: what is written is read; every other file is refused, whatever byte
// or length of it is wrong.
#include "engine/session/session_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/os/signals.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

SessionHeader small_header() {
  SessionHeader header;
  header.origin = {.model = "tiny",
                   .model_fingerprint = "weights",
                   .tokenizer_fingerprint = "words",
                   .device = "cpu reference",
                   .kv_type = "q12",
                   .block_tokens = 16,
                   .groups = {{0, 24}, {20, 8}}};
  header.tokens.resize(70);
  for (size_t i = 0; i < header.tokens.size(); ++i) header.tokens[i] = static_cast<TokenId>(3 * i);
  header.note = std::string("a note\0with a zero", 18);
  header.blocks = {{0, 5}, {2, 3}};  // a token at 64 reads 45 and what follows
  return header;
}

std::vector<std::byte> block_of(uint64_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

void seal(std::vector<std::byte>& file) {
  const uint64_t size = file.size();
  std::memcpy(file.data() + kSessionSizeAt, &size, sizeof(size));
  const size_t end = file.size() - sizeof(ContentHash::Digest);
  ContentHash hash;
  hash.add(std::span(file).first(end));
  const auto digest = hash.digest();
  std::memcpy(file.data() + end, digest.data(), digest.size());
}

class SessionFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  Result<void> write(const SessionHeader& header) const {
    HEADRACE_ASSIGN(SessionWriter writer, SessionWriter::create(path_));
    HEADRACE_TRY(writer.begin(header));
    for (size_t i = 0; i < header.blocks.size(); ++i) {
      for (int64_t block = 0; block < header.blocks[i].count; ++block) {
        HEADRACE_TRY(
            writer.add_block(block_of(header.origin.groups[i].block_bytes,
                                      static_cast<int>(10 * i) + static_cast<int>(block))));
      }
    }
    return writer.finish();
  }
  std::vector<std::byte> content() const {
    std::ifstream file(path_, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> written(const SessionHeader& header) const {
    const auto done = write(header);
    EXPECT_TRUE(done.ok()) << done.error().to_string();
    return content();
  }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "headrace_session_file";
  const std::string path_ = (folder_ / "talk").string();
};

TEST_F(SessionFileTest, WhatIsWrittenIsRead) {
  const auto file = written(small_header());
  const auto read = read_session(file);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->header, small_header());
  const auto third = read->block(0, 2);
  EXPECT_TRUE(std::ranges::equal(third, block_of(24, 2)));
  EXPECT_TRUE(std::ranges::equal(read->block(1, 4), block_of(8, 12)));
  EXPECT_THROW((void)read->block(0, 5), InternalError);
  EXPECT_THROW((void)read->block(1, 1), InternalError);
  EXPECT_EQ(num_files(), 1U);
  EXPECT_EQ(fs::status(path_).permissions() & (fs::perms::group_all | fs::perms::others_all),
            fs::perms::none);
  EXPECT_EQ(written(small_header()), file) << "a second time, over the first";
}

TEST_F(SessionFileTest, NothingAtAllIsASession) {
  SessionHeader header;
  header.origin.block_tokens = 16;
  header.origin.groups = {{0, 24}, {20, 8}};
  header.blocks.resize(2);
  const auto read = read_session(written(header));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->header, header);
}

TEST_F(SessionFileTest, EveryOtherLengthIsRefused) {
  auto file = written(small_header());
  for (size_t size = 0; size < file.size(); ++size) {
    // Memory of its own, so that a sanitizer sees what is read beyond the end.
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    const auto read = read_session(cut);
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt_data);
    if (size > 0) {
      EXPECT_NE(read.error().message.find("cut after"), std::string::npos);
    }
    EXPECT_FALSE(read.error().hint.empty());
    EXPECT_FALSE(parse_session(cut).ok()) << size;
  }
  file.push_back(std::byte{0});
  EXPECT_FALSE(read_session(file).ok());
}

TEST_F(SessionFileTest, EveryByteThatIsWrongIsFound) {
  auto file = written(small_header());
  for (size_t at = 0; at < file.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      const std::byte right = file[at];
      file[at] ^= static_cast<std::byte>(flip);
      const auto read = read_session(file);
      ASSERT_FALSE(read.ok()) << "byte " << at;
      EXPECT_FALSE(read.error().hint.empty());
      file[at] = right;
    }
  }
  EXPECT_TRUE(read_session(file).ok());
}

// Files that somebody made: their checksum is right.
TEST_F(SessionFileTest, SealedNonsenseIsRefusedOrHarmless) {
  const auto file = written(small_header());
  int num_read = 0;
  for (size_t at = 0; at < file.size() - sizeof(ContentHash::Digest); ++at) {
    for (const int value : {0, 1, 0x7f, 0xff}) {
      auto changed = file;
      changed[at] = static_cast<std::byte>(value);
      seal(changed);
      const auto read = read_session(changed);
      if (!read.ok()) continue;
      ++num_read;
      ASSERT_EQ(read->blocks.size(), read->header.blocks.size());
      for (size_t i = 0; i < read->blocks.size(); ++i) {
        ASSERT_EQ(read->blocks[i].size(), static_cast<uint64_t>(read->header.blocks[i].count) *
                                              read->header.origin.groups[i].block_bytes);
        ASSERT_LE(read->blocks[i].data() + read->blocks[i].size(), changed.data() + changed.size());
      }
    }
  }
  EXPECT_GT(num_read, 100);
}

TEST_F(SessionFileTest, BlocksMustBeThoseOfTheTokens) {
  const auto is_refused = [&](int64_t first, int64_t window_first) {
    SessionHeader header = small_header();
    header.blocks = {{first, 5 - first}, {window_first, 5 - window_first}};
    const auto read = read_session(written(header));
    return !read.ok() && read.error().message.find("other blocks") != std::string::npos;
  };
  EXPECT_FALSE(is_refused(0, 0));
  EXPECT_FALSE(is_refused(0, 2));
  EXPECT_TRUE(is_refused(0, 3));  // the next token reads block 2
  EXPECT_TRUE(is_refused(1, 2));
  SessionHeader header = small_header();
  header.blocks[0].count = 4;
  EXPECT_FALSE(read_session(written(header)).ok());
  header.blocks[0].count = 6;
  EXPECT_FALSE(read_session(written(header)).ok());
}

TEST_F(SessionFileTest, ANewerVersionIsSaidSo) {
  auto file = written(small_header());
  file[kSessionMagic.size()] = std::byte{2};
  seal(file);
  const auto read = read_session(file);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::unsupported);
  EXPECT_NE(read.error().message.find("version 2"), std::string::npos);
}

TEST(SessionOrigin, TheFirstDifferenceIsNamed) {
  const SessionOrigin here = small_header().origin;
  EXPECT_TRUE(check_origin(here, here).ok());
  const auto said = [&](auto change) {
    SessionOrigin other = here;
    change(other);
    const auto checked = check_origin(other, here);
    EXPECT_FALSE(checked.ok());
    if (checked.ok()) return std::string();
    EXPECT_EQ(checked.error().code, ErrorCode::mismatch);
    return checked.error().message + " | " + checked.error().hint;
  };
  EXPECT_EQ(said([](SessionOrigin& other) {
              other.model = "big";
              other.model_fingerprint = "others";
            }),
            "the session was made with another model: 'big', expected 'tiny' | use the model that "
            "it was made with, or give another name");
  EXPECT_EQ(said([](SessionOrigin& other) { other.model_fingerprint = "others"; }),
            "the session was made with another model: one of the same name, 'tiny', and other "
            "weights | use the model that it was made with, or give another name");
  EXPECT_EQ(said([](SessionOrigin& other) { other.tokenizer_fingerprint = "others"; }),
            "the session was made with another tokenizer | use the tokenizer that it was made "
            "with, or give another name");
  EXPECT_EQ(said([](SessionOrigin& other) { other.kv_type = "q8"; }),
            "the session's KV type is 'q8', the model's here 'q12' | open the model with --kv-type "
            "q8, or give another name");
  EXPECT_EQ(said([](SessionOrigin& other) { other.block_tokens = 32; }),
            "the session's KV blocks have 32 tokens, here they have 16 | open the model with "
            "blocks of that size, or give another name");
  EXPECT_NE(said([](SessionOrigin& other) { other.device = "cpu avx2"; }).find("'cpu avx2'"),
            std::string::npos);
  EXPECT_NE(said([](SessionOrigin& other) { other.groups[1].window = 21; }).find("shape"),
            std::string::npos);
  SessionOrigin renamed = here;
  renamed.model = "another name of it";
  EXPECT_TRUE(check_origin(renamed, here).ok());
}

TEST_F(SessionFileTest, AFullDiskLeavesTheOldFileAlone) {
  const auto old = written(small_header());
  ignore_file_size_signal();
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const rlim_t size : {rlim_t{100}, rlim_t{old.size() - 20}, rlim_t{old.size() - 1}}) {
    struct rlimit small = before;
    small.rlim_cur = size;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto done = write(small_header());
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::resource_exhausted);
    EXPECT_EQ(done.error().where, path_);
    EXPECT_EQ(num_files(), 1U);
    EXPECT_EQ(content(), old);
  }
}

TEST_F(SessionFileTest, OnlyASessionIsReplaced) {
  std::ofstream(path_) << "Dear diary";
  const auto done = write(small_header());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().where, path_);
  EXPECT_EQ(done.error().message, "is there already, and is no session file");
  EXPECT_EQ(content().size(), 10U);
  EXPECT_EQ(SessionWriter::create("/no/such/folder/x").error().code, ErrorCode::io_error);
  EXPECT_FALSE(SessionWriter::create("/dev/null").ok());
}

TEST_F(SessionFileTest, WhatIsNotFinishedIsNotThere) {
  {
    auto writer = SessionWriter::create(path_);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->begin(small_header()).ok());
    EXPECT_EQ(writer->finish().error().code, ErrorCode::internal);
  }
  EXPECT_EQ(num_files(), 0U);
}

}  // namespace
}  // namespace headrace
