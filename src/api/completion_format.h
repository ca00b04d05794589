// The answers of /v1/completions. Must not know sockets.
#pragma once

#include <memory>

#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

/// text_completion, whole or in chunks with [DONE] at the end.
std::unique_ptr<ReplyFormat> make_completion_format(const ResponseHead& head,
                                                    std::shared_ptr<const PreparedRequest> request,
                                                    std::shared_ptr<const ServedModel> model);

}  // namespace headrace::api
