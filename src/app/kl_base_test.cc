#include "app/kl_base.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "sampling/logprobs.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kOddVocab = 1001;  // rows are padded

KlBaseHeader small_header() {
  KlBaseHeader header;
  header.vocab_size = kOddVocab;
  header.num_chunks = 2;
  header.chunk_tokens = 6;
  header.rows_per_chunk = 2;
  header.tokenizer_digest = "abc123";
  return header;
}

class KlBase : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "headrace_kl_base_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "base").string();
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.0F, 4.0F);
    rows_.resize(4);
    for (auto& row : rows_) {
      row.resize(kOddVocab);
      for (float& value : row) value = normal(random);
    }
    ids_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<void> write_all() {
    HEADRACE_ASSIGN(auto writer, KlBaseWriter::create(path_, small_header(), ids_));
    for (const auto& row : rows_) HEADRACE_TRY(writer.add_row(row, log_sum_exp(row)));
    return writer.finish();
  }

  std::vector<fs::path> left_behind() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }

  fs::path folder_;
  std::string path_;
  std::vector<std::vector<float>> rows_;
  std::vector<TokenId> ids_;
};

TEST_F(KlBase, ReadsBackWithinTheStatedError) {
  ASSERT_TRUE(write_all().ok());
  EXPECT_EQ(left_behind().size(), 1U);
  const auto reader = KlBaseReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().to_string();
  EXPECT_EQ(reader->header(), small_header());
  EXPECT_TRUE(std::ranges::equal(reader->ids(), ids_));
  std::vector<float> got(kOddVocab);
  for (size_t r = 0; r < rows_.size(); ++r) {
    const double normalizer = log_sum_exp(rows_[r]);
    EXPECT_EQ(reader->read_row(static_cast<int64_t>(r), got), argmax(rows_[r]));
    double divergence = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double right = static_cast<double>(rows_[r][i]) - normalizer;
      const double best = static_cast<double>(rows_[r][static_cast<size_t>(argmax(rows_[r]))]);
      const double below = best - static_cast<double>(rows_[r][i]);
      EXPECT_NEAR(got[i], right, 1e-5 + std::sqrt(below * 40.0) / 65535.0);
      divergence += std::exp(static_cast<double>(got[i])) * (static_cast<double>(got[i]) - right);
    }
    EXPECT_NEAR(divergence, 0, 2e-5);
  }
}

TEST_F(KlBase, AnUnfinishedFileIsTakenAway) {
  {
    auto writer = KlBaseWriter::create(path_, small_header(), ids_);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->add_row(rows_[0], log_sum_exp(rows_[0])).ok());
    EXPECT_FALSE(writer->finish().ok());
  }
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(KlBase, NoFolderIsAnError) {
  path_ = (folder_ / "nowhere" / "base").string();
  EXPECT_FALSE(KlBaseWriter::check_target(path_).ok());
  const auto written = write_all();
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::io_error);
  EXPECT_EQ(written.error().where, path_);
}

TEST_F(KlBase, WhatIsNotABaseIsNotReplaced) {
  const auto text_at = [](const fs::path& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::ofstream(folder_ / "notes") << "mine";
  std::ofstream(folder_ / "empty");
  fs::create_directory(folder_ / "folder");
  fs::create_symlink("notes", folder_ / "link");
  fs::create_symlink("nowhere", folder_ / "dangling");
  for (const char* name : {"notes", "empty", "folder", "link", "dangling"}) {
    path_ = (folder_ / name).string();
    for (const auto& refused : {KlBaseWriter::check_target(path_), write_all()}) {
      ASSERT_FALSE(refused.ok()) << name;
      EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << name;
      EXPECT_EQ(refused.error().where, path_);
      EXPECT_FALSE(refused.error().hint.empty());
    }
  }
  const auto device = KlBaseWriter::check_target("/dev/null");
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.error().message.find("device"), std::string::npos);
  EXPECT_EQ(text_at(folder_ / "notes"), "mine");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(left_behind().size(), 5U);
}

TEST_F(KlBase, ABaseIsReplacedAndNoOtherFileTouched) {
  std::ofstream(path_ + ".partial") << "mine";
  ASSERT_TRUE(write_all().ok());
  ASSERT_TRUE(KlBaseWriter::check_target(path_).ok());
  ASSERT_TRUE(write_all().ok());
  const std::string link = (folder_ / "link").string();
  fs::create_symlink("base", link);
  path_ = link;
  ASSERT_TRUE(write_all().ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(KlBaseReader::open(link).ok());
  EXPECT_EQ(fs::file_size(folder_ / "base.partial"), 4U);
  EXPECT_EQ(left_behind().size(), 3U);
}

TEST_F(KlBase, EveryTruncationIsRefused) {
  ASSERT_TRUE(write_all().ok());
  const auto size = fs::file_size(path_);
  for (const uintmax_t cut : {uintmax_t{1}, uintmax_t{8}, uintmax_t{100}, size / 2, size - 1}) {
    fs::resize_file(path_, size);
    fs::resize_file(path_, cut);
    const auto reader = KlBaseReader::open(path_);
    ASSERT_FALSE(reader.ok()) << cut;
    EXPECT_EQ(reader.error().code, ErrorCode::corrupt_data) << cut;
  }
}

TEST_F(KlBase, HugeCountsAreRefused) {
  ASSERT_TRUE(write_all().ok());
  for (const std::streamoff offset : {8, 16, 24, 32}) {
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{1} << 31, UINT64_MAX, uint64_t{0x7fffffff}}) {
      ASSERT_TRUE(write_all().ok());
      std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(offset);
      file.write(reinterpret_cast<const char*>(&value), sizeof value);
      file.close();
      const auto reader = KlBaseReader::open(path_);
      ASSERT_FALSE(reader.ok());
      EXPECT_EQ(reader.error().code, ErrorCode::corrupt_data);
    }
  }
}

}  // namespace
}  // namespace headrace
