// See chat_format.h.
#include "api/chat_format.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/json_writer.h"
#include "api/logprobs_json.h"
#include "api/openai_format.h"
#include "api/response_json.h"

namespace headrace::api {
namespace {

class ChatFormat final : public OpenAiFormat {
 public:
  ChatFormat(const ResponseHead& head, std::shared_ptr<const PreparedRequest> request,
             std::shared_ptr<const ServedModel> model)
      : OpenAiFormat(head, std::move(request), std::move(model), "chat.completion",
                     "chat.completion.chunk") {}

  void begin(std::string& out) override {
    for (int32_t i = 0; i < request().params.num_choices; ++i) {
      append_chunk(dumped({{"index", i},
                           {"delta", {{"role", "assistant"}, {"content", ""}}},
                           {"logprobs", nullptr},
                           {"finish_reason", nullptr}}),
                   out);
    }
  }

 private:
  Json choice(const Answer& answer, size_t i) override {
    const Choice& choice = answer.choices()[i];
    return {{"index", i},
            {"message", {{"role", "assistant"}, {"content", choice.text}}},
            {"logprobs", logprobs(choice, 0)},
            {"finish_reason", end_name(choice.end)},
            {"stop_reason", stop_reason(choice, request())}};
  }

  std::string delta(const Answer& answer, size_t i, const Told& told) override {
    const Choice& choice = answer.choices()[i];
    std::string out = "{\"index\":" + std::to_string(i) + ",\"delta\":{\"content\":";
    append_json_string(out, std::string_view(choice.text).substr(told.text_bytes));
    out += "},\"logprobs\":";
    out += dumped(logprobs(choice, told.num_tokens));
    return out + ",\"finish_reason\":null}";
  }

  Json last_delta(const Answer& /*answer*/, size_t i) override {
    return {{"index", i}, {"delta", Json::object()}, {"logprobs", nullptr}};
  }

  void add_rest(const Answer& answer, Json& to) override {
    const int32_t num_top = request().params.num_prompt_logprobs;
    if (num_top < 0) return;
    to["prompt_logprobs"] = prompt_logprobs(answer.prompt(0), num_top, *model().tokenizer);
  }

  Json logprobs(const Choice& choice, size_t first) const {
    const int32_t num_top = request().params.num_logprobs;
    if (num_top < 0) return nullptr;
    return chat_logprobs(choice, first, num_top, *model().tokenizer);
  }
};

}  // namespace

std::unique_ptr<ReplyFormat> make_chat_format(const ResponseHead& head,
                                              std::shared_ptr<const PreparedRequest> request,
                                              std::shared_ptr<const ServedModel> model) {
  return std::make_unique<ChatFormat>(head, std::move(request), std::move(model));
}

}  // namespace headrace::api
