// What /explain tells of a request. Must not know HTTP.
#pragma once

#include "api/json.h"
#include "server/model_set.h"
#include "server/request_trace.h"

namespace headrace::server {

/// `model`: who answered, whose bounds and tokenizer tell more; may be null.
api::Json explain_json(const RequestTrace& trace, const ModelEntry* model);

}  // namespace headrace::server
