// See openai_format.h.
#include "api/openai_format.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/prepared_request.h"
#include "api/response_json.h"
#include "api/sse.h"
#include "base/check.h"

namespace headrace::api {
namespace {

/// The fields of an object, without its braces.
std::string fields_of(const Json& object) {
  const std::string text = dumped(object);
  return text.substr(1, text.size() - 2);
}

}  // namespace

OpenAiFormat::OpenAiFormat(ResponseHead head, std::shared_ptr<const PreparedRequest> request,
                           std::shared_ptr<const ServedModel> model, std::string_view whole_name,
                           std::string_view chunk_name)
    : head_(std::move(head)),
      request_(std::move(request)),
      model_(std::move(model)),
      whole_name_(whole_name),
      chunk_name_(chunk_name),
      chunk_begin_(frame(nullptr, chunk_name)),
      told_(request_->requests.size() * static_cast<size_t>(request_->params.num_choices)) {}

/// Up to the choices, which are left open. Who answered is known once `answer` has ended.
std::string OpenAiFormat::frame(const Answer* answer, std::string_view object) const {
  const bool is_other = answer != nullptr && !answer->answered_by().empty();
  return "{" +
         fields_of({{"id", head_.id},
                    {"object", object},
                    {"created", head_.created_unix_seconds},
                    {"model", is_other ? answer->answered_by() : model_->name},
                    {"system_fingerprint", model_->fingerprint}}) +
         ",\"choices\":[";
}

Json OpenAiFormat::rest(const Answer& answer) {
  Json out = Json::object();
  add_rest(answer, out);
  out["timings"] =
      timings_json(answer.times(), answer.usage().cached_tokens, request_->tokenize_ms);
  out["warnings"] = request_->warnings;
  return out;
}

std::string OpenAiFormat::whole(const Answer& answer) {
  HEADRACE_CHECK(!answer.has_failed());
  std::string out = frame(&answer, whole_name_);
  for (size_t i = 0; i < answer.choices().size(); ++i) {
    if (i > 0) out += ',';
    out += dumped(choice(answer, i));
  }
  out += "],\"usage\":" + dumped(usage_json(answer.usage())) + ',';
  return out + fields_of(rest(answer)) + '}';
}

void OpenAiFormat::append_chunk(std::string_view choice, std::string& out) {
  std::string chunk = chunk_begin_;
  chunk.append(choice).append(request_->params.include_usage ? "],\"usage\":null}" : "]}");
  append_sse(out, "", chunk);
}

void OpenAiFormat::more(const Answer& answer, std::string& out) {
  for (size_t i = 0; i < told_.size(); ++i) tell_choice(answer, i, out);
}

void OpenAiFormat::tell_choice(const Answer& answer, size_t i, std::string& out) {
  const Choice& choice = answer.choices()[i];
  Told& told = told_[i];
  if (told.has_ended) return;
  const bool ends = choice.end != ChoiceEnd::running;
  const bool has_more =
      choice.text.size() > told.text_bytes || choice.tokens.size() > told.num_tokens;
  if (has_more || (ends && !told.has_begun && tells_empty())) {
    append_chunk(delta(answer, i, told), out);
    told.text_bytes = choice.text.size();
    told.num_tokens = choice.tokens.size();
    told.has_begun = true;
  }
  if (ends) tell_end(answer, i, out);
}

void OpenAiFormat::tell_end(const Answer& answer, size_t i, std::string& out) {
  const Choice& choice = answer.choices()[i];
  told_[i].has_ended = true;
  Json last = last_delta(answer, i);
  last["finish_reason"] = end_name(choice.end);
  last["stop_reason"] = stop_reason(choice, *request_);
  if (++num_ended_ < told_.size()) return append_chunk(dumped(last), out);
  std::string chunk = frame(&answer, chunk_name_) + dumped(last) + "],";
  if (request_->params.include_usage) chunk += "\"usage\":null,";
  append_sse(out, "", chunk + fields_of(rest(answer)) + '}');
}

void OpenAiFormat::tell_usage(const Answer& answer, std::string& out) {
  append_sse(
      out, "",
      frame(&answer, chunk_name_) + "],\"usage\":" + dumped(usage_json(answer.usage())) + '}');
}

void OpenAiFormat::end(const Answer& answer, std::string& out) {
  HEADRACE_CHECK(!answer.has_failed());
  more(answer, out);
  HEADRACE_CHECK_EQ(num_ended_, told_.size());
  if (request_->params.include_usage) tell_usage(answer, out);
  append_sse(out, "", "[DONE]");
}

void OpenAiFormat::failed(const ApiError& error, std::string& out) {
  append_sse(out, "error", error_json(error));
}

}  // namespace headrace::api
