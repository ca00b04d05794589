// See llama_format.h.
#include "api/llama_format.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "api/logprobs_json.h"
#include "api/response_json.h"
#include "api/sse.h"
#include "base/check.h"

namespace headrace::api {
namespace {

class LlamaFormat final : public ReplyFormat {
 public:
  LlamaFormat(std::shared_ptr<const PreparedRequest> request,
              std::shared_ptr<const ServedModel> model)
      : request_(std::move(request)),
        model_(std::move(model)),
        told_(request_->requests.size() * static_cast<size_t>(request_->params.num_choices)) {}

  std::string whole(const Answer& answer) override {
    HEADRACE_CHECK(!answer.has_failed());
    Json out = Json::array();
    for (size_t i = 0; i < told_.size(); ++i) out.push_back(finished(answer, i, true));
    return dumped(told_.size() == 1 ? out[0] : out);
  }

  void more(const Answer& answer, std::string& out) override {
    for (size_t i = 0; i < told_.size(); ++i) tell(answer, i, out);
  }

  void end(const Answer& answer, std::string& out) override {
    HEADRACE_CHECK(!answer.has_failed());
    more(answer, out);
  }

  void failed(const ApiError& error, std::string& out) override {
    append_sse(out, "error", error_json(error));
  }

 private:
  struct Told {
    size_t text_bytes = 0;
    size_t num_tokens = 0;
    bool has_ended = false;
  };

  void tell(const Answer& answer, size_t i, std::string& out) {
    const Choice& choice = answer.choices()[i];
    Told& told = told_[i];
    if (told.has_ended) return;
    if (choice.text.size() > told.text_bytes || choice.tokens.size() > told.num_tokens) {
      append_sse(out, "", dumped(partial(answer, i)));
      told.text_bytes = choice.text.size();
      told.num_tokens = choice.tokens.size();
    }
    if (choice.end == ChoiceEnd::running) return;
    append_sse(out, "", dumped(finished(answer, i, false)));
    told.has_ended = true;
  }

  size_t prompt_tokens(const Answer& answer, size_t i) const {
    return request_->requests[answer.prompt_of(i)].prompt.size();
  }

  Json token_ids(const Choice& choice, size_t first) const {
    Json out = Json::array();
    if (!request_->keeps_tokens) return out;
    for (size_t t = first; t < choice.tokens.size(); ++t) out.push_back(choice.tokens[t].id);
    return out;
  }

  void add_probabilities(const Choice& choice, size_t first, Json& to) const {
    const int32_t num_top = request_->params.num_logprobs;
    if (num_top <= 0) return;
    Json list = chat_logprobs(choice, first, num_top, *model_->tokenizer)["content"];
    for (size_t t = 0; t < list.size(); ++t) {
      const TokenText& token = choice.tokens[first + t];
      list[t]["id"] = token.id;
      for (size_t k = 0; k < list[t]["top_logprobs"].size(); ++k) {
        list[t]["top_logprobs"][k]["id"] = token.top[k].id;
      }
    }
    to["completion_probabilities"] = std::move(list);
  }

  Json partial(const Answer& answer, size_t i) const {
    const Choice& choice = answer.choices()[i];
    Json out = {{"index", i},
                {"content", choice.text.substr(told_[i].text_bytes)},
                {"tokens", token_ids(choice, told_[i].num_tokens)},
                {"stop", false},
                {"id_slot", -1},
                {"tokens_predicted", choice.num_tokens},
                {"tokens_evaluated", prompt_tokens(answer, i)}};
    add_probabilities(choice, told_[i].num_tokens, out);
    return out;
  }

  static std::string_view stop_type(const Choice& choice) {
    HEADRACE_CHECK(choice.end != ChoiceEnd::running);
    if (choice.stop_string) return "word";
    return choice.end == ChoiceEnd::length ? "limit" : "eos";
  }

  Json finished(const Answer& answer, size_t i, bool with_text) const {
    const Choice& choice = answer.choices()[i];
    const size_t prompt = answer.prompt_of(i);
    Json out = {{"index", i},
                {"content", with_text ? choice.text : ""},
                {"tokens", with_text ? token_ids(choice, 0) : Json::array()},
                {"id_slot", -1},
                {"stop", true},
                {"model", choice.stats.model.empty() ? model_->name : choice.stats.model},
                {"tokens_predicted", choice.num_tokens},
                {"tokens_evaluated", prompt_tokens(answer, i)},
                {"generation_settings", settings(choice)},
                {"prompt", (*request_->repeated)["prompts"][prompt]},
                {"has_new_line", choice.text.find('\n') != std::string::npos},
                {"truncated", false},
                {"stop_type", stop_type(choice)},
                {"stopping_word", choice.stop_string.value_or("")},
                {"tokens_cached", choice.stats.prompt_tokens + choice.num_tokens}};
    if (with_text) add_probabilities(choice, 0, out);
    AnswerTimes times;
    times.add(choice.stats);
    times.prompt_n = choice.stats.prompt_tokens - choice.stats.cached_tokens;
    times.predicted_n = choice.num_tokens;
    out["timings"] = timings_json(times, choice.stats.cached_tokens, request_->tokenize_ms);
    out["system_fingerprint"] = model_->fingerprint;
    out["warnings"] = request_->warnings;
    return out;
  }

  Json settings(const Choice& choice) const {
    const GenerationParams& params = request_->params;
    const SamplingParams& sampling = params.sampling;
    Json biases = Json::array();
    for (const auto& [id, bias] : sampling.logit_bias) {
      biases.push_back({{"token", id}, {"bias", short_number(bias)}});
    }
    return {{"n_predict", params.stop.max_tokens},
            {"seed", choice.stats.seed},
            {"temperature", short_number(sampling.temperature)},
            {"top_k", sampling.top_k},
            {"top_p", short_number(sampling.top_p)},
            {"min_p", short_number(sampling.min_p)},
            {"typical_p", short_number(sampling.typical_p)},
            {"repeat_last_n", sampling.penalty_last_n},
            {"repeat_penalty", short_number(sampling.repetition_penalty)},
            {"dry_multiplier", short_number(sampling.dry_multiplier)},
            {"dry_base", short_number(sampling.dry_base)},
            {"dry_allowed_length", sampling.dry_allowed_length},
            {"dry_penalty_last_n", sampling.dry_penalty_last_n},
            {"dry_sequence_breakers", params.dry_breakers},
            {"xtc_probability", short_number(sampling.xtc_probability)},
            {"xtc_threshold", short_number(sampling.xtc_threshold)},
            {"mirostat", sampling.mirostat},
            {"mirostat_tau", short_number(sampling.mirostat_tau)},
            {"mirostat_eta", short_number(sampling.mirostat_eta)},
            {"presence_penalty", short_number(sampling.presence_penalty)},
            {"frequency_penalty", short_number(sampling.frequency_penalty)},
            {"stop", params.stop_strings},
            {"max_tokens", params.stop.max_tokens},
            {"ignore_eos", params.stop.ignore_eos},
            {"stream", params.is_streamed},
            {"n_probs", std::max(params.num_logprobs, 0)},
            {"logit_bias", std::move(biases)}};
  }

  const std::shared_ptr<const PreparedRequest> request_;
  const std::shared_ptr<const ServedModel> model_;
  std::vector<Told> told_;
};

}  // namespace

std::unique_ptr<ReplyFormat> make_llama_format(const ResponseHead& /*head*/,
                                               std::shared_ptr<const PreparedRequest> request,
                                               std::shared_ptr<const ServedModel> model) {
  return std::make_unique<LlamaFormat>(std::move(request), std::move(model));
}

}  // namespace headrace::api
