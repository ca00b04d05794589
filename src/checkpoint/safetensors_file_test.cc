// Safetensors files: what is read, and what is refused, with the tensor's name and the numbers.
#include "checkpoint/safetensors_file.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/safetensors_builder.h"

namespace headrace {
namespace {

using test::safetensors_file;
using test::SafetensorsBuilder;

Result<std::vector<StoredTensor>> read_stored(const std::string& file,
                                              uint64_t budget_bytes = HeapBudget::kDefaultBytes) {
  HeapBudget budget(budget_bytes);
  return read_safetensors(std::as_bytes(std::span(file)), budget);
}

std::string stored_error(const std::string& file) {
  const auto result = read_stored(file);
  return result.ok() ? "no error" : result.error().to_string();
}

std::string one_tensor(const std::string& record, size_t data_bytes) {
  return safetensors_file(R"({"t":)" + record + "}", std::string(data_bytes, 'x'));
}

TEST(Safetensors, TensorsComeInTheOrderOfTheirData) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[4,4]}}   )";
  const std::string file = safetensors_file(header, "12345678");
  const auto tensors = read_stored(file);
  ASSERT_TRUE(tensors.ok()) << tensors.error().to_string();
  ASSERT_EQ(tensors->size(), 3U);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].name, "none");
  EXPECT_EQ((*tensors)[2].name, "b");
  EXPECT_EQ((*tensors)[2].type, StoredType::f16);
  EXPECT_EQ((*tensors)[2].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(static_cast<char>((*tensors)[2].data[0]), '5');
}

TEST(Safetensors, EveryDtypeIsKnownByItsName) {
  for (int i = 0; i <= static_cast<int>(StoredType::boolean); ++i) {
    const auto type = static_cast<StoredType>(i);
    const std::string file = SafetensorsBuilder()
                                 .add("t", std::string(stored_type_name(type)), {3},
                                      std::string(3 * stored_type_bytes(type), 'x'))
                                 .build();
    const auto tensors = read_stored(file);
    ASSERT_TRUE(tensors.ok()) << tensors.error().to_string();
    EXPECT_EQ(tensors->front().type, type);
  }
}

TEST(Safetensors, HeadersThatCannotBe) {
  EXPECT_NE(stored_error("").find("ends inside the header's length"), std::string::npos);
  std::string huge(16, '\xff');
  EXPECT_NE(stored_error(huge).find("at most 100000000"), std::string::npos);
  std::string longer = safetensors_file("{}", "");
  longer[0] = 9;
  EXPECT_NE(stored_error(longer).find("only 2 are left"), std::string::npos);
  EXPECT_NE(stored_error(safetensors_file("[]", "")).find("expected a JSON object"),
            std::string::npos);
  EXPECT_NE(stored_error(safetensors_file("{", "")).find("not valid JSON"), std::string::npos);
  EXPECT_NE(stored_error(safetensors_file("", "")).find("not valid JSON"), std::string::npos);
}

TEST(Safetensors, RecordsThatCannotBe) {
  struct BadRecord {
    std::string record;
    size_t data_bytes;
    std::string message;
  };
  const std::vector<BadRecord> bad = {
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0]})", 4, "two data_offsets, found 1"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[]})", 4, "two data_offsets, found 0"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", 4, "two data_offsets, found more"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4, "has data_offsets 4 to 0"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", 4, "no number below 0"},
      {R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})", 4, "expected an integer"},
      {R"({"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]})", 4,
       "[1000, 1000] of F32 needs 4000000"},
      {R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]})", 4,
       "more bytes than 64 bits"},
      {R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})", 4, "dtype 'F33'"},
      {R"({"shape":[1],"data_offsets":[0,4]})", 4, "expected dtype, shape"},
      {R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4, "twice"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1})", 4, "unknown field 'more'"},
      {R"({"dtype":"F32","shape":{},"data_offsets":[0,4]})", 4, "found an object"},
      {R"({"dtype":"F32","shape":[[1]],"data_offsets":[0,4]})", 4, "found an array"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 3, "but the file's data are 3 bytes"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 5, "end at byte 4"},
      {R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})", 5, "nothing holds the bytes from 0"},
      {R"(7)", 0, "found a number"},
  };
  for (const BadRecord& one : bad) {
    const std::string error = stored_error(one_tensor(one.record, one.data_bytes));
    EXPECT_NE(error.find(one.message), std::string::npos) << one.record << ": " << error;
  }
}

TEST(Safetensors, TensorsThatShareDataOrNames) {
  const std::string two = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  EXPECT_NE(stored_error(safetensors_file(two, "123456")).find("inside the tensor before it"),
            std::string::npos);
  const std::string same = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_NE(stored_error(safetensors_file(same, "12")).find("'a' is there twice"),
            std::string::npos);
}

TEST(Safetensors, ManyTensorsEndAtTheBudget) {
  std::string header = "{";
  for (int i = 0; i < 20000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  const std::string file = safetensors_file(header + "}", "");
  const auto refused = read_stored(file, 1 << 20);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(read_stored(file).ok());
}

std::string valid_file() {
  return SafetensorsBuilder()
      .add_f32("model.embed_tokens.weight", {2, 3}, {1, 2, 3, 4, 5, 6})
      .add("model.norm.weight", "BF16", {3}, "abcdef")
      .add("lm_head.weight", "F8_E4M3", {2, 3}, "uvwxyz")
      .build();
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string whole = valid_file();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_stored(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_TRUE(read_stored(whole).ok());
}

// Bytes, numbers and stretches of the header changed: an error of one line, or a file whose tensors
// lie in it.
TEST(Safetensors, MutantsAreReadOrRefused) {
  std::mt19937 random(7);
  const std::string whole = valid_file();
  const std::vector<std::string> pieces = {"\"",      "{",
                                           "}",       "[",
                                           "]",       ",",
                                           ":",       "-1",
                                           "1e9",     "18446744073709551615",
                                           "null",    "true",
                                           "\\u0000", "data_offsets",
                                           "shape",   "dtype",
                                           "F32",     "BOOL"};
  size_t num_refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string file = whole;
    for (size_t edits = random() % 3 + 1; edits > 0; --edits) {
      const size_t at = random() % file.size();
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file.insert(at, pieces[random() % pieces.size()]);
          break;
        case 2:
          file.erase(at, random() % 9 + 1);
          break;
        default:
          file.replace(at, 1, std::to_string(random() % 99));
          break;
      }
      if (file.empty()) file = "{";
    }
    if (random() % 2 == 0 && file.size() >= 8) {  // a length that fits again
      const uint64_t length = file.find("}}") + 2 - 8;
      std::memcpy(file.data(), &length, sizeof(length));
    }
    const auto result = read_stored(file);
    if (!result.ok()) {
      ++num_refused;
      const std::string line = result.error().to_string();
      EXPECT_FALSE(line.empty());
      EXPECT_EQ(line.find('\n'), std::string::npos);
      continue;
    }
    for (const StoredTensor& tensor : *result) {
      const auto* begin = reinterpret_cast<const char*>(tensor.data.data());
      EXPECT_GE(begin, file.data());
      EXPECT_LE(begin + tensor.data.size(), file.data() + file.size());
    }
  }
  EXPECT_GT(num_refused, 10000U);
}

}  // namespace
}  // namespace headrace
