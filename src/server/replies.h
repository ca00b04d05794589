// Replies that many endpoints give. Must not know sockets.
#pragma once

#include <string>

#include "api/error_json.h"
#include "server/admission.h"
#include "server/http/http_message.h"

namespace headrace::server {

HttpReply json_reply(std::string body, int status = 200);
HttpReply error_reply(const api::ApiError& error);
/// With the type and code that go with the status.
HttpReply error_reply(int status, const std::string& message);
/// 429 with Retry-After.
HttpReply refusal_reply(const Refusal& refusal);
/// 503 with Retry-After.
HttpReply unavailable_reply(const std::string& message, int retry_after_seconds);
/// What error_reply() has as its body.
std::string error_body(int status, const std::string& message);

}  // namespace headrace::server
