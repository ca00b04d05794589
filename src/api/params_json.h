// The fields that all generating endpoints take alike: sampling, stopping, how the answer is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/generation_params.h"
#include "api/limits.h"
#include "api/served_model.h"
#include "text/breaker_tokens.h"

namespace headrace::api {

struct ParamsContext {
  RequestLimits limits;
  SamplingParams sampling;  ///< where a request says nothing
  StopParams stop;
  int64_t vocab_size = 0;
  bool may_stream = true;
  std::vector<ServedAdapter> adapters{};                       ///< by their index
  std::vector<std::string> dry_breakers = default_breakers();  ///< where a request says nothing
  std::shared_ptr<const BreakerFinder> breakers;               ///< null: texts break nothing
};

/// Reads them, and refuses what is not built: a constraint (response_format, grammar, forced
/// tool_choice, ...), tools, and the samplers of read_unsupported_fields(). Faults stay in
/// `fields`. Logprobs are the endpoints' own, since their shapes differ.
void read_generation_params(Fields& fields, const ParamsContext& context, GenerationParams& out);

/// The part of it that is DRY, XTC and mirostat. After the temperature is known.
void read_sampler_params(Fields& fields, const ParamsContext& context, GenerationParams& out);

/// Fields that ask for what is not built. A value that switches it on, or that would change the
/// answer, is a fault that names the field: nothing is left out in silence.
void read_unsupported_fields(Fields& fields);

/// The whole request is sound: limits of the engine that need no model. Errors name the field.
Result<void> check_params(const GenerationParams& params, int64_t vocab_size);

}  // namespace headrace::api
