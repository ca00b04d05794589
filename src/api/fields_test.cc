#include "api/fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::api {
namespace {

TEST(Fields, ReadsWhatIsThere) {
  const Json object = {{"b", true}, {"x", 0.5},    {"i", 7},
                       {"f", 8.0},  {"t", "text"}, {"none", nullptr}};
  Fields fields(object);
  bool b = false;
  float x = 0;
  int32_t i = 0;
  int64_t f = 0;
  std::string t;
  EXPECT_TRUE(fields.boolean("b", b) && b);
  EXPECT_TRUE(fields.number("x", x, 0, 1, "a number from 0 to 1") && x == 0.5F);
  EXPECT_TRUE(fields.integer("i", i, 0, 10) && i == 7);
  EXPECT_TRUE(fields.integer("f", f, 0, 10) && f == 8);
  EXPECT_TRUE(fields.text("t", t, 10) && t == "text");
  EXPECT_FALSE(fields.boolean("none", b));
  EXPECT_FALSE(fields.boolean("absent", b));
  EXPECT_TRUE(fields.status().ok());
  EXPECT_TRUE(fields.unknown().empty());
}

TEST(Fields, FaultsSayWhatWasExpectedAndFound) {
  const Json object = {{"n", "many"}, {"x", -3}, {"i", 5.5}, {"big", 99}, {"t", {1}}, {"b", 1}};
  const auto fault = [&](auto read) {
    Fields fields(object, "outer");
    read(fields);
    return fields.status().ok() ? "" : fields.status().error().to_string();
  };
  int32_t i = 1;
  float x = 1;
  bool b = true;
  std::string t;
  EXPECT_EQ(fault([&](Fields& f) { f.integer("n", i, 1, 128); }),
            "outer.n: expected a whole number from 1 to 128, found \"many\"");
  EXPECT_EQ(fault([&](Fields& f) { f.number("x", x, 0, 9, "a number of at least 0"); }),
            "outer.x: expected a number of at least 0, found -3");
  EXPECT_EQ(fault([&](Fields& f) { f.integer("i", i, 0, INT32_MAX); }),
            "outer.i: expected a whole number of at least 0, found 5.5");
  EXPECT_EQ(fault([&](Fields& f) { f.integer("big", i, 0, 20); }),
            "outer.big: expected a whole number from 0 to 20, found 99");
  EXPECT_EQ(fault([&](Fields& f) { f.text("t", t, 5); }),
            "outer.t: expected a string, found an array");
  EXPECT_EQ(fault([&](Fields& f) { f.boolean("b", b); }),
            "outer.b: expected true or false, found 1");
  EXPECT_EQ(i, 1);
  EXPECT_EQ(x, 1);
}

TEST(Fields, TheFirstFaultStays) {
  const Json object = {{"a", 1}, {"b", 2}};
  Fields fields(object);
  bool value = false;
  fields.boolean("b", value);
  fields.boolean("a", value);
  EXPECT_EQ(fields.status().error().where, "b");
}

TEST(Fields, UnknownOnesAreNamedWithTheNearest) {
  const Json object = {{"temprature", 1}, {"zzz", 1}, {"empty", nullptr}, {"temperature", 1}};
  Fields fields(object);
  float x = 0;
  fields.number("temperature", x, 0, 2, "");
  const auto unknown = fields.unknown();
  ASSERT_EQ(unknown.size(), 2u);
  EXPECT_EQ(unknown[0], "ignored: \"temprature\" is not known here; did you mean temperature?");
  EXPECT_EQ(unknown[1], "ignored: \"zzz\" is not known here");
  Json many = Json::object();
  for (int i = 0; i < 20; ++i) many["key" + std::to_string(i)] = i;
  const auto cut = Fields(many).unknown(3);
  ASSERT_EQ(cut.size(), 4u);
  EXPECT_EQ(cut.back(), "ignored: 17 more unknown fields");
}

TEST(Fields, NamesManyThatAreUnknown) {
  Json many = Json::object();
  for (int i = 0; i < 70; ++i) many["key" + std::to_string(i)] = i;
  const auto unknown = Fields(many).unknown();
  ASSERT_EQ(unknown.size(), kMaxNamedFields + 1);
  EXPECT_EQ(unknown[63], "ignored: \"key63\" is not known here");
  EXPECT_EQ(unknown.back(), "ignored: 6 more unknown fields");
}

TEST(Fields, KeepsSoManyNotes) {
  const Json object = Json{{"zzz", 1}};
  Fields fields(object);
  for (int i = 0; i < 100'000; ++i) fields.note("include", "asks for much");
  const auto unknown = fields.unknown();
  ASSERT_EQ(unknown.size(), kMaxNamedFields + 2);
  EXPECT_EQ(unknown[64], "ignored: 99936 more such values");
  EXPECT_EQ(unknown[65], "ignored: \"zzz\" is not known here");
}

TEST(AddWarning, SaysWhenThereAreMore) {
  std::vector<std::string> warnings;
  for (int i = 0; i < 1000; ++i) add_warning(warnings, "one");
  ASSERT_EQ(warnings.size(), kMaxWarnings + 1);
  EXPECT_EQ(warnings.back(), "more warnings are left out");
}

TEST(WholeNumber, OnlyWhatFitsExactly) {
  EXPECT_EQ(whole_number(5), 5);
  EXPECT_EQ(whole_number(-5.0), -5);
  EXPECT_EQ(whole_number(5.5), std::nullopt);
  EXPECT_EQ(whole_number(1e300), std::nullopt);
  EXPECT_EQ(whole_number(UINT64_MAX), std::nullopt);
  EXPECT_EQ(whole_number(true), std::nullopt);
  EXPECT_EQ(whole_number("5"), std::nullopt);
}

}  // namespace
}  // namespace headrace::api
