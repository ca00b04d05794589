// What goes into the engine (Request) and what comes out (Event). Token ids only: text, JSON and
// sockets belong to others. Part of the public C++ API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/params.h"
#include "headrace/result.h"
#include "headrace/stats.h"

namespace headrace {

struct Request {
  std::vector<TokenId> prompt;  ///< not empty
  SamplingParams sampling;
  StopParams stop;
  int32_t num_logprobs = -1;  ///< -1: none; 0: the chosen token's; k: and the k most likely
};

enum class FinishReason { stop, length, cancelled };

/// "stop", "length", "cancelled".
std::string_view finish_reason_name(FinishReason reason);

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;  ///< natural log, of the model's distribution before any sampling step
};

/// One generated token. An end or stop token is not emitted; FinishEvent names it.
struct TokenEvent {
  TokenId id = 0;
  float logprob = 0;  ///< set if asked for
  std::vector<TokenLogprob> top;
};

struct FinishEvent {
  FinishReason reason = FinishReason::stop;
  TokenId stop_token = -1;  ///< the end or stop token that ended it, or -1
  RequestStats stats;
};

struct ErrorEvent {
  Error error;
};

using Event = std::variant<TokenEvent, FinishEvent, ErrorEvent>;

}  // namespace headrace
