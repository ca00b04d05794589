#include "checkpoint/gguf_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "tests/conformance.h"
#include "tests/gguf_builder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::vector<GgufTensorPlan> plans_of(const Checkpoint& checkpoint) {
  std::vector<GgufTensorPlan> plans;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    plans.push_back({tensor.name, tensor.format, tensor.shape});
  }
  return plans;
}

/// Writes all of a checkpoint again, each tensor in two parts.
Result<void> write_again(const Checkpoint& from, const std::string& path) {
  return write_gguf(path, from.metadata(), plans_of(from),
                    [&](size_t index, GgufPut put) -> Result<void> {
                      const auto data = from.tensors()[index].data;
                      HEADRACE_TRY(put(data.first(data.size() / 3)));
                      return put(data.subspan(data.size() / 3));
                    });
}

void expect_same_content(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.metadata().values(), b.metadata().values());
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const CheckpointTensor& one = a.tensors()[i];
    const CheckpointTensor& other = b.tensors()[i];
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(one.format, other.format);
    EXPECT_EQ(one.shape, other.shape);
    EXPECT_TRUE(std::equal(one.data.begin(), one.data.end(), other.data.begin(), other.data.end()));
  }
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class GgufWriter : public ::testing::Test {
 protected:
  GgufWriter() { fs::create_directories(folder_); }
  ~GgufWriter() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  size_t num_files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "gguf_writer_test";
};

test::GgufBuilder full_file() {
  test::GgufBuilder file;
  file.add("general.architecture", "llama");
  file.add("a.u8", uint8_t{200}).add("a.i8", int8_t{-100}).add("a.u16", uint16_t{60000});
  file.add("a.i16", int16_t{-30000}).add("a.u32", uint32_t{4'000'000'000}).add("a.i32", -5);
  file.add("a.f32", 0.1f).add("a.f64", 0.1).add("a.yes", true).add("a.no", false);
  file.add("a.u64", std::numeric_limits<uint64_t>::max());
  file.add("a.i64", std::numeric_limits<int64_t>::min()).add("a.inf", INFINITY);
  file.add("b.strings", std::vector<std::string>{"", "x", std::string("a\0b", 3)});
  file.add("b.none", std::vector<std::string>{});
  file.add("b.bools", std::vector<bool>{true, false, true});
  file.add("b.f32", std::vector<float>{1.5f, -0.1f});
  file.add("b.f64", std::vector<double>{0.1, 1e300});
  file.add("b.i64", std::vector<int64_t>{-1, int64_t{1} << 40});
  file.add("b.u64", std::vector<uint64_t>{1, uint64_t{1} << 40});
  file.add("tokenizer.ggml.token_type", std::vector<int32_t>{1, 3, 6});
  file.add("tokenizer.ggml.precompiled_charsmap", std::vector<uint8_t>{0, 255, 7});
  file.add_tensor("vector.weight", 0, {3}, std::string(12, 'v'));
  file.add_tensor("matrix.weight", 8, {2, 64}, std::string(2 * 2 * 34, 'm'));
  file.add_tensor("experts.weight", 1, {2, 3, 5}, std::string(60, 'e'));
  return file;
}

TEST_F(GgufWriter, WhatWasReadIsWrittenAgain) {
  full_file().write(at("a.gguf"));
  const auto first = std::move(open_checkpoint(at("a.gguf")).value());
  ASSERT_TRUE(write_again(*first, at("b.gguf")).ok());
  const auto second = std::move(open_checkpoint(at("b.gguf")).value());
  expect_same_content(*first, *second);
  EXPECT_EQ(gguf_file_bytes(first->metadata(), plans_of(*first)).value(),
            fs::file_size(at("b.gguf")));
  // Once more: the same file.
  ASSERT_TRUE(write_again(*second, at("c.gguf")).ok());
  EXPECT_EQ(bytes_of(at("b.gguf")), bytes_of(at("c.gguf")));
  EXPECT_EQ(num_files(), 3u);
}

TEST_F(GgufWriter, NumbersAreWrittenAsOtherReadersExpectThem) {
  full_file().write(at("a.gguf"));
  const auto first = std::move(open_checkpoint(at("a.gguf")).value());
  ASSERT_TRUE(write_again(*first, at("b.gguf")).ok());
  const std::string bytes = bytes_of(at("b.gguf"));
  const auto type_behind = [&](const std::string& key, size_t skip = 0) {
    const size_t place = bytes.find(key);
    uint32_t type = 99;
    if (place == std::string::npos) return type;
    std::memcpy(&type, bytes.data() + place + key.size() + skip, sizeof type);
    return type;
  };
  EXPECT_EQ(type_behind("a.u8"), 4u);    // u32
  EXPECT_EQ(type_behind("a.i8"), 5u);    // i32
  EXPECT_EQ(type_behind("a.f32"), 6u);   // f32
  EXPECT_EQ(type_behind("a.f64"), 12u);  // f64
  EXPECT_EQ(type_behind("a.u64"), 10u);
  EXPECT_EQ(type_behind("tokenizer.ggml.token_type"), 9u);
  EXPECT_EQ(type_behind("tokenizer.ggml.token_type", 4), 5u);            // of i32
  EXPECT_EQ(type_behind("tokenizer.ggml.precompiled_charsmap", 4), 0u);  // of u8
}

TEST_F(GgufWriter, AFileOfAVocabularyAloneHasNoData) {
  test::GgufBuilder file;
  file.add("general.architecture", "llama").set_alignment(64);
  file.write(at("a.gguf"));
  const auto first = std::move(open_checkpoint(at("a.gguf")).value());
  ASSERT_TRUE(write_again(*first, at("b.gguf")).ok());
  const auto second = std::move(open_checkpoint(at("b.gguf")).value());
  EXPECT_EQ(second->metadata().find("general.alignment"), nullptr);
  EXPECT_EQ(second->metadata().values().size(), 1u);
}

TEST_F(GgufWriter, NothingIsLeftWhereTheDataFails) {
  std::ofstream(at("a.gguf")) << "before";
  const std::vector<GgufTensorPlan> plans = {{"a", Format::f32, {4}}, {"b", Format::f32, {4}}};
  const auto written =
      write_gguf(at("a.gguf"), {}, plans, [](size_t index, GgufPut put) -> Result<void> {
        if (index == 1) return Result<void>(Error{ErrorCode::corrupt_data, "no more", "b", ""});
        return put(std::vector<std::byte>(16));
      });
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "no more");
  EXPECT_EQ(bytes_of(at("a.gguf")), "before");
  EXPECT_EQ(num_files(), 1u);
  // A caller's fault leaves nothing either.
  for (const size_t bytes : {12, 20}) {
    EXPECT_THROW(
        (void)write_gguf(at("a.gguf"), {}, plans,
                         [&](size_t, GgufPut put) { return put(std::vector<std::byte>(bytes)); }),
        InternalError);
    EXPECT_EQ(bytes_of(at("a.gguf")), "before");
    EXPECT_EQ(num_files(), 1u);
  }
}

TEST_F(GgufWriter, RoomIsCheckedFirst) {
  const std::vector<GgufTensorPlan> plans = {{"a", Format::f32, {int64_t{1} << 50}}};
  bool was_asked = false;
  const auto written = write_gguf(at("a.gguf"), {}, plans, [&](size_t, GgufPut) {
    was_asked = true;
    return Result<void>();
  });
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::resource_exhausted);
  EXPECT_FALSE(was_asked);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(GgufWriter, AFolderThatIsAbsentIsAnError) {
  const auto nothing = [](size_t, GgufPut) { return Result<void>(); };
  const auto written = write_gguf(at("absent/a.gguf"), {}, {}, nothing);
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().to_string().find("absent"), std::string::npos);
}

TEST_F(GgufWriter, WhatNoFileCanHoldIsRefused) {
  const auto refused = [&](const GgufTensorPlan& plan) {
    const auto bytes = gguf_file_bytes({}, std::vector<GgufTensorPlan>{plan});
    return !bytes.ok() && bytes.error().code == ErrorCode::invalid_argument;
  };
  EXPECT_TRUE(refused({"", Format::f32, {4}}));
  EXPECT_TRUE(refused({std::string(300, 'n'), Format::f32, {4}}));
  EXPECT_TRUE(refused({"a", Format::f32, {}}));
  EXPECT_TRUE(refused({"a", Format::f32, {1, 1, 1, 1, 1}}));
  EXPECT_TRUE(refused({"a", Format::f32, {0, 4}}));
  EXPECT_TRUE(refused({"a", Format::f32, {-1}}));
  EXPECT_TRUE(refused({"a", Format::q8_0, {4, 31}}));
  EXPECT_TRUE(refused({"a", Format::f32, {int64_t{1} << 40, int64_t{1} << 40}}));
  EXPECT_FALSE(gguf_file_bytes({}, std::vector<GgufTensorPlan>{{"a", Format::f32, {1}},
                                                               {"a", Format::f32, {1}}})
                   .ok());
  Metadata metadata;
  metadata.set(std::string(70000, 'k'), true);
  EXPECT_FALSE(gguf_file_bytes(metadata, {}).ok());
}

TEST_F(GgufWriter, TheVocabulariesOfTheReferenceDataComeBack) {
  const auto folder = conformance::folder("tokenizers");
  if (folder.empty()) GTEST_SKIP() << "no reference data";
  size_t num_read = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto first = std::move(open_checkpoint(entry.path().string()).value());
    ASSERT_TRUE(write_again(*first, at("b.gguf")).ok());
    const auto second = std::move(open_checkpoint(at("b.gguf")).value());
    expect_same_content(*first, *second);
    ++num_read;
  }
  EXPECT_GT(num_read, 0u);
}

}  // namespace
}  // namespace headrace
