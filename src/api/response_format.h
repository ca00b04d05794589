// The answers of /v1/responses. Must not know sockets.
#pragma once

#include <memory>

#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

/// A response with one message, whole or as numbered events from response.created to
/// response.completed, response.incomplete or, behind an error event, response.failed.
std::unique_ptr<ReplyFormat> make_response_format(const ResponseHead& head,
                                                  std::shared_ptr<const PreparedRequest> request,
                                                  std::shared_ptr<const ServedModel> model);

}  // namespace headrace::api
