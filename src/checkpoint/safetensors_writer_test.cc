#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/os/mapped_file.h"
#include "checkpoint/safetensors_file.h"

namespace headrace {
namespace {

TEST(SafetensorsWriter, WhatIsWrittenIsRead) {
  const std::string path = testing::TempDir() + "safetensors_writer_test.safetensors";
  const std::vector<SafetensorsPlan> plans = {
      {"a.\"weight\"", Format::f32, {2, 1}}, {"b", Format::bf16, {3}}, {"c", Format::f16, {}}};
  const auto data = [&](size_t index, SafetensorsPut put) -> Result<void> {
    for (uint64_t i = 0; i < safetensors_bytes(plans[index]); ++i) {
      const auto byte = static_cast<std::byte>(16 * index + i);
      HEADRACE_TRY(put(std::span(&byte, 1)));
    }
    return {};
  };
  const auto size = write_safetensors(path, plans, data);
  ASSERT_TRUE(size.ok()) << size.error().to_string();
  EXPECT_EQ(*size, std::filesystem::file_size(path));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  HeapBudget budget(1 << 20);
  const auto read = read_safetensors(file->bytes(), budget);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  ASSERT_EQ(read->size(), plans.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ((*read)[i].name, plans[i].name);
    EXPECT_EQ(format_of((*read)[i].type), plans[i].format);
    EXPECT_EQ((*read)[i].shape, plans[i].shape);
    EXPECT_EQ((*read)[i].data[0], static_cast<std::byte>(16 * i));
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read->front().data.data()) % 8, 0U);
  std::filesystem::remove(path);
}

TEST(SafetensorsWriter, NothingAppearsWhereTheDataFails) {
  const std::string path = testing::TempDir() + "safetensors_writer_test.none";
  const std::vector<SafetensorsPlan> plans = {{"a", Format::f32, {2}}};
  const auto data = [](size_t, SafetensorsPut) -> Result<void> {
    return Error{ErrorCode::cancelled, "no", "", ""};
  };
  EXPECT_FALSE(write_safetensors(path, plans, data).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

}  // namespace
}  // namespace headrace
