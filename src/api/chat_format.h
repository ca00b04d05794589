// The answers of /v1/chat/completions. Must not know sockets.
#pragma once

#include <memory>

#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

/// chat.completion, and chat.completion.chunk with [DONE] at the end.
std::unique_ptr<ReplyFormat> make_chat_format(const ResponseHead& head,
                                              std::shared_ptr<const PreparedRequest> request,
                                              std::shared_ptr<const ServedModel> model);

}  // namespace headrace::api
