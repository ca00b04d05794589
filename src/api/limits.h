// How large the parts of a request may be. What goes past a limit is an error that names it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::api {

struct RequestLimits {
  size_t max_body_bytes = size_t{8} << 20;
  int max_depth = 64;               ///< nested arrays and objects
  size_t max_values = 2'000'000;    ///< numbers, strings and so on of one body, all together
  size_t max_object_keys = 16'384;  ///< of one object
  size_t max_messages = 4'096;
  size_t max_prompts = 1'024;
  size_t max_inputs = 2'048;    ///< texts to embed, documents to rank
  int32_t max_choices = 1'024;  ///< of all prompts together
  size_t max_stop_strings = 256;
  size_t max_stop_string_bytes = 4'096;
  size_t max_stop_token_ids = 1'024;
  int32_t max_logprobs = 20;  ///< most likely tokens told beside each
  size_t max_name_bytes = 1'024;
  int64_t max_timeout_ms = int64_t{7} * 24 * 3'600 * 1'000;
};

}  // namespace headrace::api
