// Runs a prepared request to its end, for callers who want the whole answer at once.
#pragma once

#include <functional>

#include "api/answer.h"
#include "api/prepared_request.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace::api {

/// Submits all prompts and collects what comes. `is_given_up` is asked some fifty times a second:
/// once it is true, everything is cancelled. Errors: those of Engine::submit, the engine's while it
/// ran (both with the request's own names in `where`), cancelled.
Result<Answer> run_request(Engine& engine, const std::shared_ptr<const Tokenizer>& tokenizer,
                           const PreparedRequest& request,
                           const std::function<bool()>& is_given_up);

}  // namespace headrace::api
