// A request and the events that come for it, for tests of answers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer.h"
#include "api/protocol.h"
#include "api/test_model.h"

namespace headrace::api {

inline constexpr std::string_view kCompletions = "/v1/completions";
inline constexpr std::string_view kChat = "/v1/chat/completions";

/// A request that was prepared, and the events that come for it.
struct Scene {
  std::unique_ptr<TestModel> model = make_test_model();
  PreparedRequest request;
  std::string_view path = "/v1/completions";

  Scene() { request.requests.resize(1); }
  /// `body` as a request of that endpoint, which must be good.
  Scene(std::string_view endpoint, std::string_view body) : path(endpoint) {
    class FixedTime final : public Clock {
      int64_t now_ns() const override { return 0; }
      int64_t unix_seconds() const override { return 1767225600; }
    };
    auto prepared = protocol_at(path)->prepare(parsed(body), model->model, FixedTime());
    EXPECT_TRUE(prepared.ok()) << (prepared.ok() ? "" : prepared.error().to_string());
    if (prepared.ok()) request = std::move(prepared).value();
  }

  std::vector<TokenId> ids(const std::string& text) const {
    return model->model.tokenizer->encode(text, {false, true}).value();
  }
  /// One token a byte.
  std::vector<TokenId> byte_ids(const std::string& text) const {
    std::vector<TokenId> out;
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      out.push_back(*model->model.tokenizer->find(text::ByteAlphabet::get().spelling(byte)));
    }
    return out;
  }
  Answer answer() const { return Answer(request, model->model.tokenizer); }
  std::unique_ptr<ReplyFormat> format() const {
    const std::shared_ptr<const PreparedRequest> shared(std::shared_ptr<int>(), &request);
    const std::shared_ptr<const ServedModel> served(std::shared_ptr<int>(), &model->model);
    return protocol_at(path)->make_format({"cmpl-1", 5}, shared, served);
  }
  std::string whole(const Answer& answer) const { return format()->whole(answer); }
  Json json(const Answer& answer) const { return Json::parse(whole(answer)); }
};

inline TokenEvent token(TokenId id, int32_t choice = 0, float logprob = -0.5F,
                        std::vector<TokenLogprob> top = {}) {
  return {.id = id, .logprob = logprob, .top = std::move(top), .choice = choice};
}

inline FinishEvent finish(FinishReason reason, int32_t choice = 0, TokenId stop_token = -1) {
  FinishEvent event{.reason = reason, .stop_token = stop_token, .stats = {}, .choice = choice};
  event.stats.prompt_tokens = 7;
  event.stats.cached_tokens = 4;
  event.stats.completion_tokens = 3;
  event.stats.prefill_ms = 2;
  event.stats.decode_ms = 10;
  return event;
}

}  // namespace headrace::api
