// See replies.h.
#include "server/replies.h"

#include <utility>

#include "api/anthropic_format.h"

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

std::string shaped(const api::ApiError& error, ErrorShape shape) {
  return shape == ErrorShape::anthropic ? api::anthropic_error(error) : api::error_json(error);
}

}  // namespace

HttpReply json_reply(std::string body, int status) {
  HttpReply out;
  out.status = status;
  out.body = std::move(body);
  return out;
}

HttpReply error_reply(const api::ApiError& error, ErrorShape shape) {
  return json_reply(shaped(error, shape), error.status);
}

HttpReply error_reply(int status, const std::string& message, ErrorShape shape) {
  return error_reply(described(status, message), shape);
}

HttpReply refusal_reply(const Refusal& refusal, ErrorShape shape) {
  HttpReply out = error_reply(429, refusal.message, shape);
  out.headers.push_back({"Retry-After", std::to_string(refusal.retry_after_seconds)});
  return out;
}

HttpReply unavailable_reply(const std::string& message, int retry_after_seconds, ErrorShape shape) {
  HttpReply out = error_reply(503, message, shape);
  out.headers.push_back({"Retry-After", std::to_string(retry_after_seconds)});
  return out;
}

std::string error_body(int status, const std::string& message, ErrorShape shape) {
  return shaped(described(status, message), shape);
}

}  // namespace headrace::server
