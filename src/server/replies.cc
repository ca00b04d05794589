// See replies.h.
#include "server/replies.h"

#include <utility>

namespace headrace::server {
namespace {

api::ApiError described(int status, const std::string& message) {
  api::ApiError out;
  out.status = status;
  out.message = message;
  switch (status) {
    case 401:
      out.type = "authentication_error";
      out.code = "invalid_api_key";
      break;
    case 403:
      out.type = "permission_error";
      break;
    case 404:
    case 405:
      out.type = "not_found_error";
      break;
    case 429:
      out.type = "rate_limit_error";
      out.code = "rate_limit_exceeded";
      break;
    case 503:
      out.type = "server_error";
      out.code = "unavailable";
      break;
    default:
      out.type = status < 500 ? "invalid_request_error" : "server_error";
  }
  return out;
}

}  // namespace

HttpReply json_reply(std::string body, int status) {
  HttpReply out;
  out.status = status;
  out.body = std::move(body);
  return out;
}

HttpReply error_reply(const api::ApiError& error) {
  return json_reply(api::error_json(error), error.status);
}

HttpReply error_reply(int status, const std::string& message) {
  return error_reply(described(status, message));
}

HttpReply refusal_reply(const Refusal& refusal) {
  HttpReply out = error_reply(429, refusal.message);
  out.headers.push_back({"Retry-After", std::to_string(refusal.retry_after_seconds)});
  return out;
}

HttpReply unavailable_reply(const std::string& message, int retry_after_seconds) {
  HttpReply out = error_reply(503, message);
  out.headers.push_back({"Retry-After", std::to_string(retry_after_seconds)});
  return out;
}

std::string error_body(int status, const std::string& message) {
  return api::error_json(described(status, message));
}

}  // namespace headrace::server
