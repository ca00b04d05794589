// What the phases of a completion took beside what the machine allows. Must not know HTTP.
#pragma once

#include "api/json.h"
#include "app/model_bounds.h"
#include "server/request_trace.h"

namespace headrace::server {

/// {"prefill": {...}, "decode": {...}}, without a phase that had no step. Each has "tokens" that
/// were computed, "ms" that steps with rows of the completion ran (waiting between them is not in
/// it, others' rows in the same steps are; where no timeline was kept, it is the whole phase), and
/// the bound for one sequence alone.
api::Json bounds_json(const TraceChoice& choice, const ModelBounds& bounds);

}  // namespace headrace::server
