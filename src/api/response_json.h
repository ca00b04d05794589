// What the bodies of answers have in them, whatever their protocol. Must not know the bodies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/answer.h"
#include "api/json.h"
#include "api/prepared_request.h"

namespace headrace::api {

/// JSON as it is sent: bytes that are not UTF-8 become U+FFFD.
std::string dumped(const Json& json);

/// With as few digits as tell it from all other floats.
double short_number(float value);

/// "stop" or "length"; not of one that is running.
std::string_view end_name(ChoiceEnd end);
/// vLLM's: the stop string or stop token of the request that ended it, else null.
Json stop_reason(const Choice& choice, const PreparedRequest& request);

/// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}.
Json usage_json(const Usage& usage);

/// Milliseconds and counts; `tokenize_ms` is left out where there is none.
Json timings_json(const AnswerTimes& times, int64_t cached_tokens,
                  std::optional<double> tokenize_ms);
/// Of one completion alone.
Json timings_json(const RequestStats& stats);

}  // namespace headrace::api
