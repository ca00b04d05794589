// The answers of llama-server's /completion. Must not know sockets.
#pragma once

#include <memory>

#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

/// One object, or an array of them where there are several answers; streamed, an event for each
/// new part, and the object with its text left out at the end of each answer.
std::unique_ptr<ReplyFormat> make_llama_format(const ResponseHead& head,
                                               std::shared_ptr<const PreparedRequest> request,
                                               std::shared_ptr<const ServedModel> model);

}  // namespace headrace::api
