// Replies that many endpoints give. Must not know sockets.
#pragma once

#include <string>

#include "api/error_json.h"
#include "server/admission.h"
#include "server/error_shape.h"
#include "server/http/http_message.h"

namespace headrace::server {

HttpReply json_reply(std::string body, int status = 200);
HttpReply error_reply(const api::ApiError& error, ErrorShape shape = ErrorShape::openai);
/// With the type and code that go with the status.
HttpReply error_reply(int status, const std::string& message,
                      ErrorShape shape = ErrorShape::openai);
/// 429 with Retry-After.
HttpReply refusal_reply(const Refusal& refusal, ErrorShape shape = ErrorShape::openai);
/// 503 with Retry-After.
HttpReply unavailable_reply(const std::string& message, int retry_after_seconds,
                            ErrorShape shape = ErrorShape::openai);
/// What error_reply() has as its body.
std::string error_body(int status, const std::string& message, ErrorShape shape);

}  // namespace headrace::server
