// What all generating endpoints take alike, after parsing. Must not know JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/params.h"
#include "headrace/request.h"

namespace headrace::api {

struct GenerationParams {
  std::string model;  ///< as asked for; empty: the one there is
  SamplingParams sampling;
  StopParams stop;
  bool has_max_tokens = false;                      ///< the request says it; else it is a default
  std::string_view max_tokens_name = "max_tokens";  ///< under which it does
  std::vector<std::string> stop_strings;            ///< none is empty
  std::vector<std::string> dry_breakers;            ///< as texts; see SamplingParams
  int32_t num_choices = 1;                          ///< of each prompt
  int32_t num_logprobs = -1;                        ///< as in Request
  int32_t num_prompt_logprobs = -1;
  int32_t priority = 0;
  int64_t timeout_ms = 0;
  bool is_streamed = false;
  bool include_usage = false;  ///< a last chunk with the usage, where streamed
  /// The tokens that a prompt is cut to; 0: it is not; -1: as many as fit.
  int64_t truncate_prompt_tokens = 0;
  std::string_view truncation_name = "truncate_prompt_tokens";  ///< under which that was asked for
  bool may_use_lighter_model = false;                           ///< where this one has no room
  /// As the request chooses them, by `lora` or by an adapter's name as its model.
  std::optional<std::vector<AdapterUse>> adapters;
  std::string user;
  std::string cache_salt;
};

}  // namespace headrace::api
