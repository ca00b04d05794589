// See completion_format.h.
#include "api/completion_format.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/logprobs_json.h"
#include "api/openai_format.h"
#include "api/response_json.h"

namespace headrace::api {
namespace {

class CompletionFormat final : public OpenAiFormat {
 public:
  CompletionFormat(const ResponseHead& head, std::shared_ptr<const PreparedRequest> request,
                   std::shared_ptr<const ServedModel> model)
      : OpenAiFormat(head, std::move(request), std::move(model), "text_completion",
                     "text_completion") {}

 private:
  Json choice(const Answer& answer, size_t i) override {
    Json out = part(answer, i, Told{});
    const Choice& choice = answer.choices()[i];
    out["finish_reason"] = end_name(choice.end);
    out["stop_reason"] = stop_reason(choice, request());
    add_prompt_logprobs(answer, i, out);
    return out;
  }

  std::string delta(const Answer& answer, size_t i, const Told& told) override {
    Json out = part(answer, i, told);
    out["finish_reason"] = nullptr;
    return dumped(out);
  }

  Json last_delta(const Answer& answer, size_t i) override {
    Json out = {{"index", i}, {"text", ""}, {"logprobs", nullptr}};
    add_prompt_logprobs(answer, i, out);
    return out;
  }

  bool tells_empty() const override { return !request().echoes.empty(); }

  /// What there is more than was told, the echo of the prompt before all.
  Json part(const Answer& answer, size_t i, const Told& told) {
    const Choice& choice = answer.choices()[i];
    const std::string* const echo =
        request().echoes.empty() ? nullptr : &request().echoes[answer.prompt_of(i)];
    std::string text = echo != nullptr && !told.has_begun ? *echo : "";
    text += std::string_view(choice.text).substr(told.text_bytes);
    Json out = {{"index", i}, {"text", std::move(text)}, {"logprobs", nullptr}};
    if (request().params.num_logprobs < 0) return out;
    logprobs_.resize(answer.choices().size());
    CompletionLogprobs lists(request().params.num_logprobs, model().tokenizer, logprobs_[i]);
    if (echo != nullptr && !told.has_begun) {
      lists.add_prompt(*echo, answer.prompt(answer.prompt_of(i)));
    }
    lists.add_tokens(choice, told.num_tokens);
    out["logprobs"] = lists.take();
    return out;
  }

  void add_prompt_logprobs(const Answer& answer, size_t i, Json& to) const {
    const int32_t num_top = request().params.num_prompt_logprobs;
    if (num_top < 0) return;
    to["prompt_logprobs"] =
        prompt_logprobs(answer.prompt(answer.prompt_of(i)), num_top, *model().tokenizer);
  }

  std::vector<TextPlace> logprobs_;  ///< one a choice: how far it was told
};

}  // namespace

std::unique_ptr<ReplyFormat> make_completion_format(const ResponseHead& head,
                                                    std::shared_ptr<const PreparedRequest> request,
                                                    std::shared_ptr<const ServedModel> model) {
  return std::make_unique<CompletionFormat>(head, std::move(request), std::move(model));
}

}  // namespace headrace::api
