// See explain_bounds.h.
#include "server/explain_bounds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headrace::server {
namespace {

using api::Json;

/// Rows [first_position, first_position + tokens) in steps that took `ms`.
struct PhaseWork {
  int64_t first_position = 0;
  int64_t tokens = 0;
  double ms = 0;
};

struct PhaseWorks {
  PhaseWork prefill;
  PhaseWork decode;
};

/// The steps up to the first token, and those after it. Steps that computed something again, since
/// the memory was given to others, are in the time alone.
PhaseWorks works_of(const Timeline& timeline, const RequestStats& stats) {
  PhaseWorks out;
  bool has_token = false;
  for (const TimelineEntry& entry : timeline.entries) {
    PhaseWork& phase = has_token ? out.decode : out.prefill;
    phase.ms += entry.duration_ms;
    phase.tokens += has_token ? entry.num_tokens : entry.rows;
    has_token = has_token || entry.num_tokens > 0;
  }
  const int64_t prompt = stats.prompt_tokens;
  out.prefill.tokens = std::min(out.prefill.tokens, prompt);
  // What was computed of a prompt is its end, once there is a token.
  out.prefill.first_position = has_token
                                   ? prompt - out.prefill.tokens
                                   : std::min(stats.cached_tokens, prompt - out.prefill.tokens);
  out.decode.first_position = prompt;
  return out;
}

PhaseWorks works_of(const RequestStats& stats) {
  PhaseWorks out;
  out.prefill = {stats.cached_tokens, stats.prompt_tokens - stats.cached_tokens, stats.prefill_ms};
  out.decode = {stats.prompt_tokens, stats.completion_tokens - 1, stats.decode_ms};
  return out;
}

void add_phase(Json& to, const char* name, const PhaseWork& work, const BoundTime& bound) {
  if (work.tokens <= 0 || work.ms <= 0 || bound.seconds <= 0) return;
  const auto tokens = static_cast<double>(work.tokens);
  const double bound_ms = 1e3 * bound.seconds;
  to[name] = {{"tokens", work.tokens},
              {"ms", work.ms},
              {"tokens_per_second", 1e3 * tokens / work.ms},
              {"bound_ms", bound_ms},
              {"bound_tokens_per_second", tokens / bound.seconds},
              {"bound_kind", bound.is_by_compute ? "compute" : "bandwidth"},
              {"fraction_of_bound", bound_ms / work.ms}};
}

}  // namespace

api::Json bounds_json(const TraceChoice& choice, const ModelBounds& bounds) {
  const PhaseWorks works =
      choice.timeline ? works_of(*choice.timeline, choice.stats) : works_of(choice.stats);
  const PhaseWork& prefill = works.prefill;
  const PhaseWork& decode = works.decode;
  Json out = Json::object();
  add_phase(out, "prefill", prefill, bounds.prefill_time(prefill.first_position, prefill.tokens));
  add_phase(out, "decode", decode, bounds.decode_time(decode.first_position, decode.tokens));
  return out;
}

}  // namespace headrace::server
