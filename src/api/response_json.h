// The body of a successful answer, as OpenAI has it, with our own usage, timings and warnings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/answer.h"
#include "api/json.h"
#include "api/prepared_request.h"
#include "api/served_model.h"

namespace headrace::api {

struct ResponseHead {
  std::string id;  ///< "cmpl-...", "chatcmpl-..."
  int64_t created_unix_seconds = 0;
};

/// What an id of this endpoint's answers begins with.
std::string_view id_prefix(Endpoint endpoint);

/// The whole body: text_completion or chat.completion. `answer` has not failed. Always valid UTF-8
/// without NaN.
std::string response_json(const ResponseHead& head, const PreparedRequest& request,
                          const Answer& answer, const ServedModel& model);

/// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}.
Json usage_json(const Usage& usage);

/// Milliseconds and counts; `tokenize_ms` is left out where there is none.
Json timings_json(const AnswerTimes& times, int64_t cached_tokens,
                  std::optional<double> tokenize_ms);
/// Of one completion alone.
Json timings_json(const RequestStats& stats);

}  // namespace headrace::api
