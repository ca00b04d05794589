// Embeddings and rankings: bodies, windows of texts, vectors, answers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/embedding_request.h"
#include "api/embedding_text.h"
#include "api/embedding_vector.h"
#include "api/test_scene.h"

namespace headrace::api {
namespace {

constexpr std::string_view kEmbeddings = "/v1/embeddings";
constexpr std::string_view kRerank = "/v1/rerank";

class NoTime final : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  int64_t unix_seconds() const override { return 0; }
};

/// [CLS] 1, [SEP] 2, then "a" to "h".
std::shared_ptr<const Tokenizer> letters() {
  text::VocabularyBuilder builder("bert");
  builder.token("[UNK]", TokenKind::control);
  builder.token("[CLS]", TokenKind::control);
  builder.token("[SEP]", TokenKind::control);
  for (const char letter : std::string("abcdefgh"))
    builder.token("\xE2\x96\x81" + std::string(1, letter));
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.cls_token_id", uint64_t{1});
  builder.set("tokenizer.ggml.seperator_token_id", uint64_t{2});
  return builder.build();
}

ServedModel encoder(int64_t num_classes = 0) {
  ServedModel out;
  out.name = "tiny-bert";
  out.tokenizer = letters();
  out.vocab_size = out.tokenizer->vocab_size();
  out.is_encoder = true;
  out.embedding_length = 4;
  out.num_classes = num_classes;
  out.max_context = 6;
  return out;
}

Result<PreparedRequest> prepared(std::string_view path, std::string_view body,
                                 const ServedModel& model) {
  return prepare(*protocol_at(path), parsed(body), model, NoTime());
}

std::string where_of(std::string_view path, std::string_view body, const ServedModel& model) {
  const auto made = prepared(path, body, model);
  EXPECT_FALSE(made.ok()) << body;
  return made.ok() ? "no error" : made.error().where;
}

using Ids = std::vector<TokenId>;

TEST(EmbeddingVector, CutsThenNormalises) {
  std::vector<float> vector = {3, 4, 100};
  ASSERT_TRUE(shape_embedding(vector, {.dimensions = 2}).ok());
  EXPECT_EQ(vector, (std::vector<float>{0.6F, 0.8F}));
  vector = {3, 4, 100};
  ASSERT_TRUE(shape_embedding(vector, {.normalizes = false, .dimensions = 2}).ok());
  EXPECT_EQ(vector, (std::vector<float>{3, 4}));
  vector = {0, 0, 1};
  EXPECT_EQ(shape_embedding(vector, {.dimensions = 2}).error().code, ErrorCode::internal);
}

TEST(EmbeddingVector, Means) {
  const std::vector<std::vector<float>> vectors = {{1, 0}, {0, 1}};
  const std::vector<double> weights = {3, 1};
  EXPECT_EQ(weighted_mean(vectors, weights), (std::vector<float>{0.75F, 0.25F}));
  EXPECT_NEAR(cosine(vectors[0], std::vector<float>{1, 1}), std::sqrt(0.5), 1e-12);
}

TEST(EmbeddingVector, AsText) {
  std::string out;
  append_numbers(out, std::vector<float>{0.1F, -1e-30F, 3});
  EXPECT_EQ(out, "[0.1,-1e-30,3]");
  // What Python's base64.b64encode(struct.pack("<2f", 1, -2)) gives, and of one and three floats.
  out.clear();
  append_base64(out, std::vector<float>{1, -2});
  EXPECT_EQ(out, "\"AACAPwAAAMA=\"");
  out.clear();
  append_base64(out, std::vector<float>{1});
  EXPECT_EQ(out, "\"AACAPw==\"");
  out.clear();
  append_base64(out, std::vector<float>{1, -2, 0.5F});
  EXPECT_EQ(out, "\"AACAPwAAAMAAAAA/\"");
}

TEST(TextWindows, AsTheTokenizerMakesThem) {
  const ServedModel model = encoder();
  for (const std::string text : {"", "a", "a b c d"}) {
    const auto windows = text_windows({.text = text}, true, model, {.most_tokens = 6}, "");
    ASSERT_TRUE(windows.ok());
    ASSERT_EQ(windows->size(), 1U);
    EXPECT_EQ(windows->front().ids, model.tokenizer->encode(text, {true, false}).value());
  }
  const auto plain = text_windows({.text = "a b"}, false, model, {}, "");
  EXPECT_EQ(plain->front().ids, (Ids{3, 4}));
  EXPECT_EQ(text_windows({.text = ""}, false, model, {}, "x").error().where, "x");
}

TEST(TextWindows, LongOnes) {
  const ServedModel model = encoder();
  const Prompt text{.text = "a b c d e f g"};
  const auto refused = text_windows(text, true, model, {6, LongTexts::refuse}, "input[2]");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(refused.error().where, "input[2]");
  EXPECT_NE(refused.error().message.find("9 tokens"), std::string::npos);
  EXPECT_NE(refused.error().message.find("the 6 tokens"), std::string::npos);
  const auto cut = text_windows(text, true, model, {6, LongTexts::truncate}, "");
  ASSERT_EQ(cut->size(), 1U);
  EXPECT_EQ(cut->front().ids, (Ids{1, 3, 4, 5, 6, 2}));
  const auto split = text_windows(text, true, model, {6, LongTexts::split}, "");
  ASSERT_EQ(split->size(), 2U);
  EXPECT_EQ((*split)[0].ids, (Ids{1, 3, 4, 5, 6, 2}));
  EXPECT_EQ((*split)[1].ids, (Ids{1, 7, 8, 9, 2}));
  EXPECT_EQ((*split)[0].weight, 4);
  EXPECT_EQ((*split)[1].weight, 3);
  // Ids are taken as they are.
  const auto ids = text_windows({.ids = {3, 3, 3}}, true, model, {2, LongTexts::truncate}, "");
  EXPECT_EQ(ids->front().ids, (Ids{3, 3}));
  EXPECT_FALSE(text_windows(text, true, model, {2, LongTexts::truncate}, "").ok());
}

TEST(TextPairs, AreSetApart) {
  const ServedModel model = encoder(1);
  const auto pair = text_pair("a b", "c", model, {.most_tokens = 6}, "");
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->ids, (Ids{1, 3, 4, 2, 5, 2}));
  EXPECT_EQ(pair->second_text, 4);
  EXPECT_EQ(text_pair("a", "b c d", model, {.most_tokens = 6}, "d").error().where, "d");
  EXPECT_EQ(text_pair("a", "b c d", model, {6, LongTexts::truncate}, "")->ids,
            (Ids{1, 3, 2, 4, 5, 2}));
  EXPECT_EQ(text_pair("a b c", "d", model, {6, LongTexts::truncate}, "").error().where, "query");
}

TEST(EmbeddingRequest, FourKindsOfInputs) {
  const ServedModel model = encoder();
  const auto num = [&](std::string_view body) {
    const auto made = prepared(kEmbeddings, body, model);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return made.ok() ? made->requests.size() : 0;
  };
  EXPECT_EQ(num(R"({"input":"a"})"), 1U);
  EXPECT_EQ(num(R"({"input":["a","b c",""]})"), 3U);
  EXPECT_EQ(num(R"({"input":[3,4]})"), 1U);
  EXPECT_EQ(num(R"({"input":[[3],[4,5]]})"), 2U);
  const auto made = prepared(kEmbeddings, R"({"input":["a","b"],"pooling":"cls","priority":2,
      "timeout_ms":50,"dimensions":2,"encoding_format":"base64","normalize":false})",
                             model);
  ASSERT_TRUE(made.ok());
  const Request& second = made->requests[1];
  EXPECT_EQ(second.kind, RequestKind::embed);
  EXPECT_EQ(second.prompt, (Ids{1, 4, 2}));
  EXPECT_EQ(second.pooling, Pooling::cls);
  EXPECT_EQ(second.priority, 2);
  EXPECT_EQ(second.timeout_ms, 50);
  EXPECT_EQ(made->embedding->dimensions, 2);
  EXPECT_TRUE(made->embedding->as_base64);
  EXPECT_FALSE(made->embedding->normalizes);
  EXPECT_TRUE(made->warnings.empty());
}

TEST(EmbeddingRequest, Faults) {
  const ServedModel model = encoder();
  EXPECT_EQ(where_of(kEmbeddings, R"({})", model), "input");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":[]})", model), "input");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":{"a":1}})", model), "input");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":["a",5]})", model), "input[1]");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":[99]})", model), "input[0]");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":[[3],[]]})", model), "input");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":["a","a b c d e"]})", model), "input[1]");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","dimensions":5})", model), "dimensions");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","dimensions":0})", model), "dimensions");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","encoding_format":"hex"})", model),
            "encoding_format");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","pooling":"max"})", model), "pooling");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","stream":true})", model), "stream");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","truncate_prompt_tokens":0})", model),
            "truncate_prompt_tokens");
  EXPECT_EQ(where_of(kEmbeddings, R"({"input":"a","model":"other"})", model), "model");
  std::string many = R"({"input":["a")";
  for (int i = 0; i < 2048; ++i) many += R"(,"a")";
  EXPECT_EQ(where_of(kEmbeddings, many + "]}", model), "input");
}

TEST(EmbeddingRequest, IsCutWhereThatIsAskedFor) {
  const ServedModel model = encoder();
  for (const std::string how : {R"("truncate":true)", R"("truncate_prompt_tokens":-1)",
                                R"("truncate_prompt_tokens":100)"}) {
    const auto made = prepared(kEmbeddings, R"({"input":"a b c d e f",)" + how + "}", model);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made->requests[0].prompt, (Ids{1, 3, 4, 5, 6, 2})) << how;
  }
  const auto made =
      prepared(kEmbeddings, R"({"input":"a b c d e f","truncate_prompt_tokens":3})", model);
  EXPECT_EQ(made->requests[0].prompt, (Ids{1, 3, 2}));
}

TEST(EmbeddingRequest, TellsOfUnknownFields) {
  const auto made = prepared(kEmbeddings, R"({"input":"a","dimension":2})", encoder());
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->warnings.size(), 1U);
  EXPECT_NE(made->warnings[0].find("dimensions"), std::string::npos);
}

TEST(EmbeddingModels, GenerateNothing) {
  for (const Protocol& protocol : protocols()) {
    const auto made = prepare(protocol, parsed(R"({"prompt":"a"})"), encoder(), NoTime());
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(api_error(made.error()).status, 400);
    EXPECT_NE(made.error().message.find("embedding model"), std::string::npos);
  }
}

/// The answer to a request, one vector a text.
Json answered(std::string_view path, std::string_view body, const ServedModel& model,
              const std::vector<std::vector<float>>& vectors) {
  const auto made = prepared(path, body, model);
  EXPECT_TRUE(made.ok());
  const auto request = std::make_shared<const PreparedRequest>(*made);
  Answer answer(*request, model.tokenizer);
  for (size_t i = 0; i < vectors.size(); ++i) {
    answer.take(i, EmbeddingEvent{vectors[i]});
    answer.take(i, finish(FinishReason::stop));
  }
  EXPECT_FALSE(answer.has_failed());
  const auto format = protocol_at(path)->make_format({"id-1", 5}, request,
                                                     std::make_shared<const ServedModel>(model));
  return Json::parse(format->whole(answer));
}

TEST(EmbeddingAnswer, IsOpenAis) {
  const Json json =
      answered(kEmbeddings, R"({"input":["a","b"]})", encoder(), {{3, 4, 0, 0}, {0, 0, 0, 2}});
  EXPECT_EQ(json["object"], "list");
  EXPECT_EQ(json["model"], "tiny-bert");
  EXPECT_EQ(json["usage"], Json({{"prompt_tokens", 14}, {"total_tokens", 14}}));
  ASSERT_EQ(json["data"].size(), 2U);
  EXPECT_EQ(json["data"][0]["object"], "embedding");
  EXPECT_EQ(json["data"][1]["index"], 1);
  EXPECT_EQ(json["data"][1]["embedding"], Json({0, 0, 0, 1}));
  EXPECT_FLOAT_EQ(json["data"][0]["embedding"][0].get<float>(), 0.6F);
  const Json packed = answered(
      kEmbeddings, R"({"input":"a","encoding_format":"base64","normalize":false,"dimensions":2})",
      encoder(), {{1, -2, 0, 0}});
  EXPECT_EQ(packed["data"][0]["embedding"], "AACAPwAAAMA=");
}

TEST(EmbeddingAnswer, FailsWhereNothingIsLeftOfAVector) {
  const ServedModel model = encoder();
  const auto made = prepared(kEmbeddings, R"({"input":"a","dimensions":2})", model);
  Answer answer(*made, model.tokenizer);
  answer.take(0, EmbeddingEvent{{0, 0, 1, 1}});
  EXPECT_TRUE(answer.has_failed());
}

TEST(Ranking, TheBestFirst) {
  const std::string body = R"({"query":"a","documents":["b",{"text":"c"},"d"])";
  const ServedModel model = encoder(1);
  const auto made = prepared(kRerank, body + "}", model);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->requests.size(), 3U);
  EXPECT_EQ(made->requests[1].kind, RequestKind::score);
  EXPECT_EQ(made->requests[1].prompt, (Ids{1, 3, 2, 5, 2}));
  EXPECT_EQ(made->requests[1].second_text, 3);
  const Json all = answered(kRerank, body + "}", model, {{-1}, {0}, {2}});
  ASSERT_EQ(all["results"].size(), 3U);
  EXPECT_EQ(all["results"][0]["index"], 2);
  EXPECT_EQ(all["results"][1]["index"], 1);
  EXPECT_DOUBLE_EQ(all["results"][1]["relevance_score"].get<double>(), 0.5);
  EXPECT_FALSE(all["results"][0].contains("document"));
  const Json best =
      answered(kRerank, body + R"(,"top_n":2,"return_documents":true,"raw_scores":true})", model,
               {{-1}, {0}, {2}});
  ASSERT_EQ(best["results"].size(), 2U);
  EXPECT_EQ(best["results"][0]["relevance_score"], 2);
  EXPECT_EQ(best["results"][1]["document"]["text"], "c");
}

TEST(Ranking, Faults) {
  const ServedModel model = encoder(1);
  EXPECT_EQ(where_of(kRerank, R"({"documents":["a"]})", model), "query");
  EXPECT_EQ(where_of(kRerank, R"({"query":"a"})", model), "documents");
  EXPECT_EQ(where_of(kRerank, R"({"query":"a","documents":[]})", model), "documents");
  EXPECT_EQ(where_of(kRerank, R"({"query":"a","documents":["a",{"no":1}]})", model),
            "documents[1]");
  EXPECT_EQ(where_of(kRerank, R"({"query":"a","documents":["a"],"top_n":0})", model), "top_n");
  // A model without a head says what is needed.
  for (const int64_t num_classes : {0, 3}) {
    const auto made = prepared(kRerank, R"({"query":"a","documents":["a"]})", encoder(num_classes));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(api_error(made.error()).status, 400);
    EXPECT_NE(made.error().hint.find("cross-encoder"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace::api
