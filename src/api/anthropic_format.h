// The answers and errors of Anthropic's Messages API. Must not know sockets.
#pragma once

#include <memory>
#include <string>

#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

/// A message with one block of text, whole or as events from message_start to message_stop.
std::unique_ptr<ReplyFormat> make_anthropic_format(const ResponseHead& head,
                                                   std::shared_ptr<const PreparedRequest> request,
                                                   std::shared_ptr<const ServedModel> model);

/// {"type": "error", "error": {"type", "message"}}, and our own code and param.
std::string anthropic_error(const ApiError& error);

}  // namespace headrace::api
