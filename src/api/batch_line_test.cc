#include "api/batch_line.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "api/test_model.h"

namespace headrace::api {
namespace {

BatchLine line_of(std::string_view text, int64_t number = 7) {
  return parse_batch_line(text, number, false, {});
}

TEST(BatchLine, AGoodOne) {
  const BatchLine line =
      line_of(R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"n":1}})");
  ASSERT_FALSE(line.error) << line.error->to_string();
  EXPECT_EQ(line.custom_id, "a");
  EXPECT_EQ(line.protocol, protocol_at("/v1/chat/completions"));
  EXPECT_EQ(line.body->dump(), R"({"n":1})");
  EXPECT_FALSE(line_of(R"({"custom_id":"a","url":"/v1/completions","body":{}})").error);
}

TEST(BatchLine, Faults) {
  const auto fault = [](std::string_view text) {
    const BatchLine line = line_of(text);
    EXPECT_TRUE(line.error) << text;
    return line.error ? api_error(*line.error) : ApiError{};
  };
  EXPECT_EQ(fault(R"({"custom_id":"a","url":"/v1/rerank","body":{}})").status, 404);
  EXPECT_EQ(fault(R"({"custom_id":"a","url":"/v1/rerank","body":{}})").param, "url");
  EXPECT_EQ(fault(R"({"custom_id":"a","body":{}})").param, "url");
  EXPECT_EQ(fault(R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})").param,
            "method");
  EXPECT_EQ(fault(R"({"custom_id":"a","url":"/v1/completions"})").message,
            "expected an object as body, found nothing");
  EXPECT_EQ(fault(R"({"custom_id":"a","url":"/v1/completions","body":[]})").status, 400);
  EXPECT_EQ(fault(R"({"custom_id":5,"url":"/v1/completions","body":{}})").message,
            "custom_id: line 7: expected a string, found 5");
  EXPECT_NE(fault("[]").message.find("line 7: expected a JSON object"), std::string::npos);
  EXPECT_NE(fault("{\"custom_id\"").message.find("line 7"), std::string::npos);
}

TEST(BatchLine, TheCustomIdIsKnownWhereItCanBeRead) {
  const BatchLine broken = line_of(R"({"custom_id":"a","body":{"temperature":NaN}})");
  EXPECT_EQ(broken.custom_id, "a");
  EXPECT_EQ(broken.error->where, "temperature");
  EXPECT_EQ(broken.error->message.find("line"), std::string::npos);
  const BatchLine cut = parse_batch_line(R"({"custom_id":"a","body":{"prompt":"xxxx)", 3, true, {});
  EXPECT_EQ(cut.custom_id, "a");
  EXPECT_EQ(api_error(*cut.error).status, 413);
}

TEST(BatchLine, ABodyMayBeAsDeepAsARequest) {
  const auto nested = [](size_t depth) {
    return R"({"custom_id":"a","url":"/v1/completions","body":{"x":)" + std::string(depth, '[') +
           std::string(depth, ']') + "}}";
  };
  EXPECT_FALSE(line_of(nested(63)).error);
  const BatchLine deep = line_of(nested(64));
  ASSERT_TRUE(deep.error);
  EXPECT_EQ(deep.error->where, "x");
  EXPECT_NE(deep.error->message.find("the 64 levels"), std::string::npos) << deep.error->message;
}

TEST(BatchLine, ACutOneNamesNoField) {
  for (const char* text : {R"({"custom_id":"a","method":"PO)", R"({"custom_id":"a","method")",
                           R"({"custom_id":"a","method":"POST","body":{"prompt":)"}) {
    const BatchLine cut = line_of(text);
    ASSERT_TRUE(cut.error);
    EXPECT_EQ(cut.custom_id, "a");
    EXPECT_EQ(api_error(*cut.error).param, "") << text;
    EXPECT_EQ(api_error(*cut.error).status, 400);
    EXPECT_EQ(api_error(*cut.error).message, "the JSON ends too early");
  }
}

TEST(BatchLine, UnknownFieldsAreNamed) {
  EXPECT_TRUE(line_of(R"({"custom_id":"a","url":"/v1/completions","body":{}})").warnings.empty());
  EXPECT_EQ(
      line_of(R"({"custom_id":"a","ulr":1,"url":"/v1/completions","body":{},"x":null})").warnings,
      std::vector<std::string>{"line: ignored: \"ulr\" is not known here; did you mean url?"});
}

TEST(BatchAnswer, IsReadBack) {
  BatchLine line = line_of(R"({"custom_id":"\"é\n","url":"/v1/completions","body":{}})");
  const std::string good =
      batch_success(line, R"({"model":"m","system_fingerprint":"f-1","choices":[]})");
  EXPECT_EQ(good.back(), '\n');
  EXPECT_EQ(good.find('\n'), good.size() - 1);
  const auto answer = read_batch_answer(good);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->key, line.key);
  EXPECT_EQ(answer->custom_id, "\"é\n");
  EXPECT_EQ(answer->model, "m");
  EXPECT_EQ(answer->fingerprint, "f-1");
  EXPECT_FALSE(answer->has_failed);

  line = line_of("{");
  const std::string bad = batch_failure(line, api_error(*line.error));
  const Json json = Json::parse(bad);
  EXPECT_TRUE(json["custom_id"].is_null());
  EXPECT_EQ(json["response"]["status_code"], 400);
  EXPECT_EQ(json["response"]["body"]["error"]["type"], "invalid_request_error");
  EXPECT_EQ(json["error"]["code"], "invalid_argument");
  EXPECT_EQ(json["error"]["message"], json["response"]["body"]["error"]["message"]);
  EXPECT_TRUE(read_batch_answer(bad)->has_failed);
  EXPECT_FALSE(read_batch_answer(bad)->custom_id);

  for (const char* text : {"", "5", "{}", R"({"id":"x","custom_id":"a","response":{}})",
                           R"({"custom_id":"a","url":"/v1/completions","body":{}})"}) {
    EXPECT_FALSE(read_batch_answer(text).ok()) << text;
  }
}

TEST(BatchLine, Duplicates) {
  const std::string text = R"({"custom_id":"a","url":"/v1/completions","body":{}})";
  const BatchLine first = line_of(text);
  BatchLine second = line_of(text);
  EXPECT_EQ(first.key, second.key);
  mark_as_duplicate(second);
  EXPECT_NE(first.key, second.key);
  EXPECT_EQ(second.key, duplicate_key(first.key));
  EXPECT_EQ(second.error->where, "custom_id");
}

TEST(DigestSet, InsertsOnce) {
  DigestSet set;
  std::set<Digest> expected;
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const Digest digest = digest_of(std::to_string(random() % 12'000));
    EXPECT_EQ(set.insert(digest), expected.insert(digest).second);
  }
  EXPECT_EQ(set.size(), expected.size());
}

TEST(Digest, Hex) {
  const Digest digest = digest_of("abc");
  EXPECT_EQ(hex_of(digest), "ba7816bf8f01cfea414140de5dae2223");
  EXPECT_EQ(digest_of_hex(hex_of(digest)), digest);
  EXPECT_EQ(digest_of_hex("ba78"), std::nullopt);
  EXPECT_EQ(digest_of_hex(std::string(32, 'g')), std::nullopt);
}

}  // namespace
}  // namespace headrace::api
