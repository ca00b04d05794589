#include "checkpoint/metadata.h"

#include <gtest/gtest.h>

#include <limits>

namespace headrace {
namespace {

Metadata sample() {
  Metadata metadata;
  metadata.set("bool", true);
  metadata.set("int", int64_t{-5});
  metadata.set("uint", uint64_t{7});
  metadata.set("huge", std::numeric_limits<uint64_t>::max());
  metadata.set("float", 0.5);
  metadata.set("string", std::string_view("text"));
  metadata.set("bools", std::vector<bool>{true, false});
  metadata.set("ints", std::vector<int64_t>{-1, 2});
  metadata.set("uints", std::vector<uint64_t>{3, 4});
  metadata.set("huges", std::vector<uint64_t>{1, uint64_t{1} << 63});
  metadata.set("floats", std::vector<double>{0.25, 1});
  metadata.set("strings", std::vector<std::string_view>{"a", ""});
  return metadata;
}

TEST(Metadata, GettersReturnTheirTypesAndWidenIntegers) {
  const Metadata metadata = sample();
  EXPECT_EQ(**metadata.get_string("string"), "text");
  EXPECT_EQ(**metadata.get_bool("bool"), true);
  EXPECT_EQ(**metadata.get_int("int"), -5);
  EXPECT_EQ(**metadata.get_int("uint"), 7);
  EXPECT_EQ(**metadata.get_float("float"), 0.5);
  EXPECT_EQ(**metadata.get_float("int"), -5.0);
  EXPECT_EQ(**metadata.get_float("uint"), 7.0);
  EXPECT_EQ((**metadata.get_strings("strings"))[0], "a");
  EXPECT_EQ(**metadata.get_ints("bools"), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(**metadata.get_ints("ints"), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(**metadata.get_ints("uints"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(**metadata.get_floats("floats"), (std::vector<double>{0.25, 1}));
  EXPECT_EQ(**metadata.get_floats("ints"), (std::vector<double>{-1, 2}));
  EXPECT_EQ(**metadata.get_floats("uints"), (std::vector<double>{3, 4}));
}

TEST(Metadata, AMissingKeyIsNothingAndNoError) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.find("none"), nullptr);
  EXPECT_EQ(*metadata.get_string("none"), std::nullopt);
  EXPECT_EQ(*metadata.get_bool("none"), std::nullopt);
  EXPECT_EQ(*metadata.get_int("none"), std::nullopt);
  EXPECT_EQ(*metadata.get_float("none"), std::nullopt);
  EXPECT_FALSE(metadata.get_strings("none")->has_value());
  EXPECT_EQ(*metadata.get_ints("none"), std::nullopt);
  EXPECT_EQ(*metadata.get_floats("none"), std::nullopt);
}

TEST(Metadata, AWrongTypeNamesKeyExpectedAndFound) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.get_string("int").error().to_string(),
            "key 'int': expected a string, found an integer");
  EXPECT_EQ(metadata.get_bool("string").error().to_string(),
            "key 'string': expected a bool, found a string");
  EXPECT_EQ(metadata.get_int("bool").error().to_string(),
            "key 'bool': expected an integer, found a bool");
  EXPECT_EQ(metadata.get_int("float").error().to_string(),
            "key 'float': expected an integer, found a float");
  EXPECT_EQ(metadata.get_float("strings").error().to_string(),
            "key 'strings': expected a number, found an array of strings");
  EXPECT_EQ(metadata.get_strings("floats").error().to_string(),
            "key 'floats': expected an array of strings, found an array of floats");
  EXPECT_EQ(metadata.get_ints("floats").error().code, ErrorCode::corrupt_data);
  EXPECT_EQ(metadata.get_ints("int").error().code, ErrorCode::corrupt_data);
  EXPECT_EQ(metadata.get_floats("bools").error().to_string(),
            "key 'bools': expected an array of numbers, found an array of bools");
}

TEST(Metadata, AnIntegerThatDoesNotFitIsOutOfRange) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.get_int("huge").error().code, ErrorCode::out_of_range);
  EXPECT_EQ(metadata.get_ints("huges").error().to_string(),
            "key 'huges': expected an integer below 2^63, found 9223372036854775808");
}

}  // namespace
}  // namespace headrace
