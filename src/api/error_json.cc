// See error_json.h.
#include "api/error_json.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/json_body.h"

namespace headrace::api {
namespace {

int status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::out_of_range:
      return error.where == kBody ? 413 : 400;
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::context_length_exceeded:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::overloaded:
      return 429;
    case ErrorCode::cancelled:
      return 499;  // the client went away; what proxies log for it
    case ErrorCode::resource_exhausted:
      return 503;
    case ErrorCode::deadline_exceeded:
      return 504;
    case ErrorCode::corrupt_data:
    case ErrorCode::mismatch:
    case ErrorCode::io_error:
    case ErrorCode::internal:
      return 500;
  }
  return 500;
}

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string code_of(const Error& error, int status) {
  if (status == 413) return "request_too_large";
  if (error.code == ErrorCode::not_found && error.where == "model") return "model_not_found";
  return std::string(error_code_name(error.code));
}

}  // namespace

ApiError api_error(const Error& error) {
  ApiError out;
  out.status = status_of(error);
  out.type = type_of(out.status);
  out.code = code_of(error, out.status);
  if (out.status == 500) {
    // Names of files, and what an exception said, which follows a colon, are for the log.
    out.message = error.code == ErrorCode::internal
                      ? error.message.substr(0, error.message.find(": "))
                      : "the model's file cannot be used any more";
    return out;
  }
  if (error.where != kBody) out.param = error.where;
  // The message stands alone in many clients.
  out.message = out.param.empty() ? "" : out.param + ": ";
  out.message += error.message;
  if (!error.hint.empty()) out.message += " (" + error.hint + ")";
  return out;
}

Error named_for_request(Error error, const std::string& prompt_field) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"num_choices", "n"},
      {"num_logprobs", "logprobs"},
      {"num_prompt_logprobs", "prompt_logprobs"},
      {"penalty_last_n", "repeat_last_n"},
  };
  if (error.where == "prompt") error.where = prompt_field;
  for (const auto& [ours, theirs] : kNames) {
    if (error.where == ours) error.where = theirs;
  }
  return error;
}

std::string error_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const nlohmann::ordered_json json = {{"error",
                                        {{"message", error.message},
                                         {"type", error.type},
                                         {"code", or_null(error.code)},
                                         {"param", or_null(error.param)}}}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headrace::api
