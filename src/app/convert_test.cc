#include "app/convert.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/tiny_models.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class Convert : public testing::Test {
 protected:
  Convert() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    test::TinyModel tiny =
        test::tiny_model({.embedding = 256, .feed_forward = 288, .head_dim = 64, .rope_dims = 64});
    tiny.file.add("split.no", uint32_t{0});
    tiny.file.add("general.file_type", uint32_t{0});
    tiny.file.write(at("in.gguf"));
  }
  ~Convert() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  std::unique_ptr<Checkpoint> open(const std::string& name) const {
    return std::move(open_checkpoint(at(name)).value());
  }

  Result<ConvertSummary> convert(const std::string& from, const std::string& to,
                                 ConvertOptions options = {}) const {
    options.num_threads = 2;
    return convert_model(*open(from), at(to), options);
  }

  size_t num_files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "convert_test";
};

TEST_F(Convert, WithoutATypeTensorsStay) {
  const auto summary = convert("in.gguf", "out.gguf");
  ASSERT_TRUE(summary.ok()) << summary.error().to_string();
  EXPECT_EQ(summary->num_changed, 0);
  EXPECT_EQ(summary->file_bytes, fs::file_size(at("out.gguf")));
  const auto in = open("in.gguf");
  const auto out = open("out.gguf");
  ASSERT_EQ(in->tensors().size(), out->tensors().size());
  EXPECT_EQ(static_cast<size_t>(summary->num_tensors), in->tensors().size());
  for (size_t i = 0; i < in->tensors().size(); ++i) {
    const auto a = in->tensors()[i].data;
    const auto b = out->tensors()[i].data;
    EXPECT_EQ(in->tensors()[i].name, out->tensors()[i].name);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
  auto expected = in->metadata().values();
  EXPECT_EQ(expected.erase("split.no"), 1u);
  EXPECT_EQ(out->metadata().values(), expected);
}

TEST_F(Convert, TensorsBecomeWhatTheyWouldAtLoad) {
  for (const Quantization& to : all_quantizations()) {
    SCOPED_TRACE(to.name);
    const auto summary = convert("in.gguf", "out.gguf", {.to = &to, .overwrite = true});
    ASSERT_TRUE(summary.ok()) << summary.error().to_string();
    const auto in = open("in.gguf");
    const auto out = open("out.gguf");
    int64_t num_changed = 0;
    for (size_t i = 0; i < in->tensors().size(); ++i) {
      const CheckpointTensor& a = in->tensors()[i];
      const CheckpointTensor& b = out->tensors()[i];
      ASSERT_EQ(b.format, chosen_format(to, a)) << a.name;
      if (a.format == b.format) continue;
      ++num_changed;
      const auto row_bytes = *format_row_bytes(b.format, static_cast<uint64_t>(a.shape[1]));
      std::vector<std::byte> row(row_bytes);
      for (int64_t r = 0; r < a.shape[0]; ++r) {
        ASSERT_TRUE(encode_row(a, b.format, r, row.data()).ok());
        const auto found = b.data.subspan(static_cast<size_t>(r) * row_bytes, row_bytes);
        ASSERT_TRUE(std::equal(row.begin(), row.end(), found.begin())) << a.name << " row " << r;
      }
    }
    EXPECT_EQ(summary->num_changed, num_changed);
    EXPECT_EQ(out->metadata().get_int("general.file_type").value(), int64_t{to.file_type});
  }
}

TEST_F(Convert, NothingIsOverwrittenUnasked) {
  std::ofstream(at("out.gguf")) << "mine";
  const auto refused = convert("in.gguf", "out.gguf");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(fs::file_size(at("out.gguf")), 4u);
  EXPECT_TRUE(convert("in.gguf", "out.gguf", {.overwrite = true}).ok());
  EXPECT_FALSE(convert("in.gguf", "in.gguf", {.overwrite = true}).ok());
  fs::create_directory(at("folder"));
  EXPECT_FALSE(convert("in.gguf", "folder", {.overwrite = true}).ok());
}

TEST_F(Convert, WhatIsQuantisedAlreadyIsRefused) {
  const Quantization* q4 = find_quantization("q4_0");
  ASSERT_TRUE(convert("in.gguf", "small.gguf", {.to = q4}).ok());
  const auto refused = convert("small.gguf", "again.gguf", {.to = q4});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_FALSE(fs::exists(at("again.gguf")));
  // As it is: that goes.
  EXPECT_TRUE(convert("small.gguf", "again.gguf").ok());
}

TEST_F(Convert, AnEndedOneLeavesNothing) {
  ConvertOptions options;
  options.to = find_quantization("q8_0");
  options.progress = [&](uint64_t done, uint64_t total) { return total == 0 || done < total / 2; };
  const auto ended = convert("in.gguf", "out.gguf", options);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(Convert, AWeightThatIsNoNumberLeavesNothing) {
  test::GgufBuilder file;
  file.add("general.architecture", "llama");
  std::vector<float> values(64 * 64, 0.5f);
  values[64 * 20 + 3] = std::numeric_limits<float>::quiet_NaN();
  file.add_f32("blk.0.attn_q.weight", {64, 64}, values);
  file.write(at("bad.gguf"));
  const auto bad = convert("bad.gguf", "out.gguf", {.to = find_quantization("q8_0")});
  ASSERT_FALSE(bad.ok());
  const std::string text = bad.error().to_string();
  EXPECT_NE(text.find("bad.gguf"), std::string::npos) << text;
  EXPECT_NE(text.find("row 20, column 3"), std::string::npos) << text;
  EXPECT_EQ(num_files(), 2u);
}

}  // namespace
}  // namespace headrace
