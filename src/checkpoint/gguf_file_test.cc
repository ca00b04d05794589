#include "checkpoint/gguf_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/quote_name.h"
#include "checkpoint/test_gguf.h"
#include "tests/gguf_builder.h"

namespace headrace {
namespace {

using test::error_of;
using test::GgufBuilder;
using test::read;

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Every type, scalar and array, with the extreme values of each.
GgufBuilder all_types(uint32_t version) {
  GgufBuilder builder(version);
  builder.add("u8", uint8_t{255}).add("i8", int8_t{-128});
  builder.add("u16", uint16_t{65535}).add("i16", int16_t{-32768});
  builder.add("u32", uint32_t{4294967295u}).add("i32", std::numeric_limits<int32_t>::min());
  builder.add("u64", std::numeric_limits<uint64_t>::max());
  builder.add("i64", std::numeric_limits<int64_t>::min());
  builder.add("f32", 0.1f).add("f64", 0.1).add("bool", true).add("string", "s\xc3\xa9");
  builder.add("u8s", std::vector<uint8_t>{0, 255}).add("i8s", std::vector<int8_t>{-128, 127});
  builder.add("u16s", std::vector<uint16_t>{65535}).add("i16s", std::vector<int16_t>{-32768});
  builder.add("u32s", std::vector<uint32_t>{4294967295u}).add("i32s", std::vector<int32_t>{-7, 9});
  builder.add("u64s", std::vector<uint64_t>{1}).add("i64s", std::vector<int64_t>{-1});
  builder.add("f32s", std::vector<float>{0.5f, -2}).add("f64s", std::vector<double>{0.1});
  builder.add("bools", std::vector<bool>{true, false, true});
  builder.add("strings", std::vector<std::string>{"a", "", "bc"});
  builder.add("empty", std::vector<int32_t>{});
  builder.add("nested", std::vector<std::vector<int32_t>>{{1, -2}, {}, {3}});
  builder.add("nested strings", std::vector<std::vector<std::string>>{{"x", "y\n"}});
  return builder;
}

TEST(GgufFile, ReadsEveryMetadataTypeInBothVersions) {
  for (const uint32_t version : {2u, 3u}) {
    const std::string bytes = all_types(version).build();
    const auto file = read(bytes);
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    EXPECT_EQ(file->version, version);
    EXPECT_TRUE(file->tensors.empty());
    const Metadata& m = file->metadata;
    EXPECT_EQ(m.values().size(), 27u);
    const auto value = [&](std::string_view key) { return *m.find(key); };
    EXPECT_EQ(value("u8"), MetaValue(uint64_t{255}));
    EXPECT_EQ(value("i8"), MetaValue(int64_t{-128}));
    EXPECT_EQ(value("u16"), MetaValue(uint64_t{65535}));
    EXPECT_EQ(value("i16"), MetaValue(int64_t{-32768}));
    EXPECT_EQ(value("u32"), MetaValue(uint64_t{4294967295}));
    EXPECT_EQ(value("i32"), MetaValue(int64_t{std::numeric_limits<int32_t>::min()}));
    EXPECT_EQ(value("u64"), MetaValue(std::numeric_limits<uint64_t>::max()));
    EXPECT_EQ(value("i64"), MetaValue(std::numeric_limits<int64_t>::min()));
    EXPECT_EQ(value("f32"), MetaValue(static_cast<double>(0.1f)));
    EXPECT_EQ(value("f64"), MetaValue(0.1));
    EXPECT_EQ(value("bool"), MetaValue(true));
    EXPECT_EQ(value("string"), MetaValue(std::string_view("s\xc3\xa9")));
    EXPECT_EQ(value("u8s"), MetaValue(std::vector<uint64_t>{0, 255}));
    EXPECT_EQ(value("i8s"), MetaValue(std::vector<int64_t>{-128, 127}));
    EXPECT_EQ(value("u16s"), MetaValue(std::vector<uint64_t>{65535}));
    EXPECT_EQ(value("i16s"), MetaValue(std::vector<int64_t>{-32768}));
    EXPECT_EQ(value("u32s"), MetaValue(std::vector<uint64_t>{4294967295}));
    EXPECT_EQ(value("i32s"), MetaValue(std::vector<int64_t>{-7, 9}));
    EXPECT_EQ(value("u64s"), MetaValue(std::vector<uint64_t>{1}));
    EXPECT_EQ(value("i64s"), MetaValue(std::vector<int64_t>{-1}));
    EXPECT_EQ(value("f32s"), MetaValue(std::vector<double>{0.5, -2}));
    EXPECT_EQ(value("f64s"), MetaValue(std::vector<double>{0.1}));
    EXPECT_EQ(value("bools"), MetaValue(std::vector<bool>{true, false, true}));
    EXPECT_EQ(value("strings"), MetaValue(std::vector<std::string_view>{"a", "", "bc"}));
    EXPECT_EQ(value("empty"), MetaValue(std::vector<int64_t>{}));
    EXPECT_EQ(value("nested"), MetaValue(std::string_view("[[1, -2], [], [3]]")));
    EXPECT_EQ(value("nested strings"), MetaValue(std::string_view("[['x', 'y\\x0a']]")));
  }
}

TEST(GgufFile, ALongNestedArrayIsCutButReadToItsEnd) {
  GgufBuilder builder;
  builder.add("long", std::vector<std::vector<int32_t>>(1000, {1234567, 7654321}));
  builder.add("after", uint32_t{1});
  const std::string bytes = builder.build();
  const auto file = read(bytes);
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto text = **file->metadata.get_string("long");
  EXPECT_EQ(text.size(), 1003u);
  EXPECT_TRUE(text.ends_with("..."));
  EXPECT_EQ(**file->metadata.get_int("after"), 1);
}

TEST(GgufFile, TheHeaderIsChecked) {
  const std::string good = GgufBuilder().add("key", uint32_t{1}).build();
  EXPECT_EQ(error_of("").to_string(),
            "header at byte 0: expected a GGUF file, which begins with 'GGUF'");
  EXPECT_EQ(error_of("GGUF").to_string(),
            "byte 4: the file ends inside the version: expected 4 bytes, found 0 (the file may be "
            "cut short: fetch it again)");
  EXPECT_EQ(read(GgufBuilder(1).build()).error().code, ErrorCode::unsupported);
  EXPECT_EQ(error_of(GgufBuilder(4).build()).to_string(),
            "header at byte 4: GGUF version 4, expected 2 or 3");
  const auto big_endian = read(GgufBuilder(0x03000000).build());
  EXPECT_EQ(big_endian.error().code, ErrorCode::unsupported);
  EXPECT_NE(big_endian.error().message.find("big-endian"), std::string::npos);

  for (const size_t place : {8u, 16u}) {
    for (const uint64_t count : {uint64_t{100}, uint64_t{1} << 40, ~uint64_t{0}}) {
      std::string bytes = good;
      std::memcpy(bytes.data() + place, &count, sizeof count);
      const auto result = read(bytes);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().where, "header at byte " + std::to_string(place));
      EXPECT_NE(result.error().message.find(std::to_string(count)), std::string::npos);
    }
  }
}

TEST(GgufFile, KeysAreChecked) {
  EXPECT_EQ(
      error_of(GgufBuilder().add("twice", uint8_t{1}).add("twice", uint8_t{2}).build()).to_string(),
      "key 'twice' at byte 42: the key appears twice");
  EXPECT_EQ(error_of(GgufBuilder().add("", uint8_t{1}).build()).to_string(),
            "key number 0 at byte 24: the key is empty");
  EXPECT_EQ(error_of(GgufBuilder().add(std::string(65536, 'k'), uint8_t{1}).build()).to_string(),
            "key number 0 at byte 24: byte 24: the key is 65536 bytes long, but only 65535 are "
            "allowed");
  EXPECT_TRUE(read(GgufBuilder().add(std::string(65535, 'k'), uint8_t{1}).build()).ok());
}

TEST(GgufFile, ValuesAreChecked) {
  EXPECT_EQ(error_of(GgufBuilder().add_raw("k", 13, "12345678").build()).to_string(),
            "key 'k' at byte 24: byte 33: unknown value type 13, expected 0 to 12");
  EXPECT_EQ(error_of(GgufBuilder().add_raw("k", 7, "\x02").build()).to_string(),
            "key 'k' at byte 24: byte 37: a bool must be 0 or 1, found 2");
  EXPECT_EQ(error_of(GgufBuilder().add_raw("k", 10, "1234").build()).to_string(),
            "key 'k' at byte 24: byte 37: the file ends inside the value: expected 8 bytes, found "
            "4 (the file may be cut short: fetch it again)");
  std::string text;
  append(text, uint64_t{1} << 60);
  EXPECT_EQ(error_of(GgufBuilder().add_raw("k", 8, text).build()).to_string(),
            "key 'k' at byte 24: byte 37: the string is 1152921504606846976 bytes long, but only 0 "
            "are left (the file may be cut short: fetch it again)");
}

std::string array(uint32_t type, uint64_t count, std::string_view elements = "") {
  std::string out;
  append(out, type);
  append(out, count);
  return out + std::string(elements);
}

TEST(GgufFile, ArraysAreChecked) {
  // A count whose product with the element size wraps to something small, for each type.
  for (uint32_t type = 0; type <= 12; ++type) {
    for (const uint64_t count : {uint64_t{1} << 61, (uint64_t{1} << 62) + 1, ~uint64_t{0}}) {
      const auto result = read(GgufBuilder().add_raw("k", 9, array(type, count, "1234")).build());
      ASSERT_FALSE(result.ok()) << type;
      EXPECT_EQ(result.error().code, ErrorCode::corrupt_data);
      EXPECT_EQ(result.error().where, "key 'k' at byte 24: byte 49");
    }
  }
  EXPECT_EQ(error_of(GgufBuilder().add_raw("k", 9, array(99, 1, "12345678")).build()).to_string(),
            "key 'k' at byte 24: byte 37: unknown value type 99, expected 0 to 12");
  EXPECT_EQ(
      error_of(GgufBuilder().add_raw("k", 9, array(7, 3, "\x01\x01\x05")).build()).to_string(),
      "key 'k' at byte 24: byte 51: a bool must be 0 or 1, found 5");
  std::string strings;
  append(strings, uint64_t{1});
  strings += "a";
  append(strings, uint64_t{77});
  EXPECT_EQ(error_of(GgufBuilder().add_raw("k", 9, array(8, 2, strings)).build()).to_string(),
            "key 'k' at byte 24: element 1: byte 58: the string is 77 bytes long, but only 0 are "
            "left (the file may be cut short: fetch it again)");
}

TEST(GgufFile, NestedArraysAreCheckedAndBounded) {
  const auto nested = [](int depth, const std::string& inner) {
    std::string heads;
    for (int i = 0; i < depth; ++i) heads += array(9, 1);
    return GgufBuilder().add_raw("k", 9, heads + inner).build();
  };
  EXPECT_TRUE(read(nested(8, array(0, 1, "x"))).ok())
      << error_of(nested(8, array(0, 1, "x"))).to_string();
  EXPECT_NE(error_of(nested(9, array(0, 1, "x"))).to_string().find("nested more than 8 deep"),
            std::string::npos);
  EXPECT_NE(error_of(nested(100000, array(0, 1, "x"))).to_string().find("nested more than 8 deep"),
            std::string::npos);
  EXPECT_NE(
      error_of(nested(1, array(5, uint64_t{1} << 62, "x"))).to_string().find("bytes are left"),
      std::string::npos);
  EXPECT_NE(error_of(nested(1, array(44, 1, "x"))).to_string().find("unknown value type 44"),
            std::string::npos);
  EXPECT_NE(error_of(nested(1, array(8, 1, "12345678"))).to_string().find("bytes long"),
            std::string::npos);
}

TEST(GgufFile, MemoryForMetadataIsBounded) {
  const std::vector<std::string> empty_strings(1000);
  const std::string strings = GgufBuilder().add("k", empty_strings).build();
  EXPECT_TRUE(read(strings, 17000).ok());
  const auto result = read(strings, 16000);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(result.error().where, "key 'k' at byte 24");

  const std::string numbers = GgufBuilder().add("k", std::vector<uint8_t>(1000)).build();
  EXPECT_EQ(read(numbers, 8000).error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(read(numbers, 9000).ok());
}

TEST(GgufFile, TheAlignmentIsChecked) {
  for (const uint32_t good : {8u, 16u, 32u, 4096u}) {
    const float one = 1;
    const std::string bytes =
        GgufBuilder().set_alignment(good).add_f32("t", {1}, {&one, 1}).build();
    const auto file = read(bytes);
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    EXPECT_EQ((file->tensors[0].data.data() - begin) % good, 0);
    EXPECT_EQ(static_cast<size_t>(file->tensors[0].data.data() - begin) + 4, bytes.size());
  }
  for (const uint32_t bad : {0u, 1u, 4u, 24u, 0x80000000u}) {
    const std::string bytes = GgufBuilder().add("general.alignment", bad).build();
    EXPECT_NE(error_of(bytes).to_string().find("key 'general.alignment'"), std::string::npos);
    EXPECT_NE(error_of(bytes).to_string().find("found " + std::to_string(bad)), std::string::npos);
  }
  EXPECT_EQ(error_of(GgufBuilder().add("general.alignment", "32").build()).to_string(),
            "metadata at byte 24: key 'general.alignment': expected an integer, found a string");
}

TEST(QuoteName, MakesAnyNameFitForOneLine) {
  EXPECT_EQ(quote_name("blk.0"), "'blk.0'");
  EXPECT_EQ(quote_name("a\nb\x1b\xff"), "'a\\x0ab\\x1b\\xff'");
  EXPECT_EQ(quote_name(std::string(81, 'x')), "'" + std::string(80, 'x') + "...'");
}

}  // namespace
}  // namespace headrace
