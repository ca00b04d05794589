#include "api/json_body.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace headrace::api {
namespace {

Error fault_of(std::string_view text, const RequestLimits& limits = {}) {
  Json out;
  const auto read = parse_body(text, limits, out);
  EXPECT_FALSE(read.ok()) << text;
  return read.ok() ? Error{} : read.error();
}

TEST(ParseBody, KeepsTheOrderOfKeysAndAllKindsOfValues) {
  const std::string text =
      R"({"z":1,"a":[true,false,null,-5,18446744073709551615,0.5,"é\n",{}],"m":{"y":[],"b":""}})";
  Json out;
  ASSERT_TRUE(parse_body(text, {}, out).ok());
  EXPECT_EQ(out.dump(), text);
}

TEST(ParseBody, SyntaxFaultsNameTheField) {
  EXPECT_EQ(fault_of("").where, "body");
  EXPECT_NE(fault_of("").message.find("ends too early"), std::string::npos);
  EXPECT_NE(fault_of(R"({"a":1)").message.find("ends too early"), std::string::npos);
  EXPECT_EQ(fault_of(R"({"a":"b)").where, "body");
  const Error bad = fault_of(R"({"messages":[{"role":"user"},{"content":tru}]})");
  EXPECT_EQ(bad.code, ErrorCode::invalid_argument);
  EXPECT_EQ(bad.where, "messages[1].content");
  EXPECT_NE(bad.message.find("at byte 43"), std::string::npos) << bad.message;
  EXPECT_FALSE(fault_of("{} x").message.empty());
}

TEST(ParseBody, NumbersThatAreNone) {
  for (const char* text :
       {R"({"temperature":NaN})", R"({"temperature": Infinity})", R"({"temperature":-Infinity})"}) {
    const Error error = fault_of(text);
    EXPECT_EQ(error.where, "temperature");
    EXPECT_NE(error.message.find("JSON has no"), std::string::npos) << error.message;
  }
  const Error huge = fault_of(R"({"top_p":1e999})");
  EXPECT_EQ(huge.where, "top_p");
  EXPECT_NE(huge.message.find("too large"), std::string::npos) << huge.message;
}

TEST(ParseBody, BytesThatAreNotUtf8) {
  for (const char* text : {"{\"prompt\":\"\xC4\xE3\"}", "{\"prompt\":\"\xED\xA0\x80\"}", "\xFF"}) {
    EXPECT_NE(fault_of(text).message.find("not UTF-8 at byte"), std::string::npos);
  }
  EXPECT_EQ(fault_of("{\"prompt\":\"\xC4\xE3\"}").where, "prompt");
  EXPECT_FALSE(fault_of(R"({"prompt":"\ud800"})").message.empty());
}

TEST(ParseBody, Depth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  Json out;
  EXPECT_TRUE(parse_body(nested(64), {}, out).ok());
  EXPECT_NE(fault_of(nested(65)).message.find("64"), std::string::npos);
  EXPECT_NE(fault_of(std::string(1'000'000, '[')).message.find("nested deeper"), std::string::npos);
  EXPECT_EQ(fault_of("{\"a\":{\"b\":" + std::string(70, '[')).where, "a");
}

TEST(ParseBody, AKeyGivenTwice) {
  const Error error = fault_of(R"({"max_tokens":5,"n":1,"max_tokens":500})");
  EXPECT_EQ(error.where, "max_tokens");
  EXPECT_NE(error.message.find("twice"), std::string::npos);
  EXPECT_EQ(fault_of(R"({"messages":[{"role":"a","role":"b"}]})").where, "messages[0].role");
}

TEST(ParseBody, Limits) {
  RequestLimits limits;
  limits.max_body_bytes = 10;
  EXPECT_EQ(fault_of("[1,2,3,4,5]", limits).where, "body");
  EXPECT_EQ(fault_of("[1,2,3,4,5]", limits).code, ErrorCode::out_of_range);
  limits.max_body_bytes = 100;
  limits.max_values = 5;
  EXPECT_NE(fault_of("[1,2,3,4,5]", limits).message.find("at most 5 values"), std::string::npos);
  limits.max_object_keys = 2;
  EXPECT_NE(fault_of(R"({"a":1,"b":2,"c":3})", limits).message.find("at most 2 keys"),
            std::string::npos);
}

TEST(ParseBody, KeepsWhatCameBeforeAFault) {
  Json out;
  EXPECT_FALSE(parse_body(R"({"custom_id":"a","body":{"x":[1,)", {}, out).ok());
  EXPECT_EQ(out["custom_id"], "a");
}

TEST(ParseBody, ManyKeysTakeNoLongerThanManyValues) {
  std::string text = "[";
  for (int object = 0; object < 40; ++object) {
    text += object == 0 ? "{" : ",{";
    for (int key = 0; key < 16'000; ++key) {
      text += (key == 0 ? "\"" : ",\"") + std::to_string(key) + "\":0";
    }
    text += '}';
  }
  text += ']';
  const auto begin = std::chrono::steady_clock::now();
  Json out;
  EXPECT_TRUE(parse_body(text, {}, out).ok());
  // Looking for each key among those before it would take a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace headrace::api
