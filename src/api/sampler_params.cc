// The samplers that look at the history or at their own state: DRY, XTC and mirostat; see
// params_json.h.
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/in_quotes.h"
#include "api/params_json.h"

namespace headrace::api {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

/// Leaves `to` alone where the request says nothing.
void read_breakers(Fields& fields, std::vector<std::string>& to) {
  constexpr std::string_view kName = "dry_sequence_breakers";
  const Json* const value = fields.find(kName);
  if (value == nullptr) return;
  if (!value->is_array()) return fields.fail(kName, "an array of strings", *value);
  std::vector<std::string> texts;
  for (size_t i = 0; i < value->size() && i <= kMaxBreakers; ++i) {
    const Json& text = (*value)[i];
    if (!text.is_string()) {
      return fields.fail(
          wrong_value(std::string(kName) + "[" + std::to_string(i) + "]", "a string", text));
    }
    texts.push_back(text.get<std::string>());
  }
  if (auto checked = check_breakers(texts); !checked.ok()) {
    checked.error().where = kName;
    return fields.fail(std::move(checked).error());
  }
  to = std::move(texts);
}

void read_dry(Fields& fields, const ParamsContext& context, GenerationParams& out) {
  SamplingParams& to = out.sampling;
  fields.number("dry_multiplier", to.dry_multiplier, 0, 1e9, "a number from 0 (off) to 1e9");
  fields.number("dry_base", to.dry_base, 1, 1e9, "a number from 1 to 1e9");
  fields.integer("dry_allowed_length", to.dry_allowed_length, 0, kMost);
  fields.integer("dry_penalty_last_n", to.dry_penalty_last_n, -1, kMost);
  out.dry_breakers = context.dry_breakers;
  read_breakers(fields, out.dry_breakers);
  if (fields.has_failed() || to.dry_multiplier == 0.0F || context.breakers == nullptr) return;
  BreakerTokens found = context.breakers->find(out.dry_breakers);
  to.dry_breakers = std::move(found.ids);
  for (const std::string& text : found.unknown) {
    fields.note("dry_sequence_breakers", "has " + in_quotes(text, 40) + ", which is in no token");
  }
}

bool is_given_as_other_than(Fields& fields, std::string_view name, double neutral) {
  const Json* const value = fields.find(name);
  return value != nullptr && value->is_number() && value->get<double>() != neutral;
}

void note_what_mirostat_replaces(Fields& fields) {
  struct Replaced {
    std::string_view name;
    double neutral;
  };
  constexpr std::array<Replaced, 4> kReplaced = {
      {{"top_p", 1}, {"min_p", 0}, {"typical_p", 1}, {"xtc_probability", 0}}};
  constexpr const char* kWhy = "does nothing, for mirostat is on";
  if (is_given_as_other_than(fields, "top_k", 0) && is_given_as_other_than(fields, "top_k", -1)) {
    fields.note("top_k", kWhy);
  }
  for (const Replaced& each : kReplaced) {
    if (is_given_as_other_than(fields, each.name, each.neutral)) fields.note(each.name, kWhy);
  }
}

}  // namespace

void read_sampler_params(Fields& fields, const ParamsContext& context, GenerationParams& out) {
  SamplingParams& to = out.sampling;
  read_dry(fields, context, out);
  fields.number("xtc_probability", to.xtc_probability, 0, 1, "a number from 0 to 1");
  fields.number("xtc_threshold", to.xtc_threshold, 0, 1, "a number from 0 to 1");
  for (const char* name : {"mirostat", "mirostat_mode"}) {
    fields.integer(name, to.mirostat, 0, 2);
  }
  constexpr const char* kPace = "a number from 0 to 1000";
  fields.number("mirostat_tau", to.mirostat_tau, 0, 1e3, kPace);
  fields.number("mirostat_eta", to.mirostat_eta, 0, 1e3, kPace);

  const bool is_greedy = to.temperature == 0.0F;
  constexpr const char* kGreedy = "does nothing at a temperature of 0";
  if (to.mirostat != 0 && !is_greedy) return note_what_mirostat_replaces(fields);
  for (const char* name : {"mirostat", "mirostat_mode", "xtc_probability"}) {
    if (is_greedy && is_given_as_other_than(fields, name, 0)) fields.note(name, kGreedy);
  }
  if (!is_greedy && to.xtc_threshold > 0.5F &&
      is_given_as_other_than(fields, "xtc_probability", 0)) {
    fields.note("xtc_probability",
                "does nothing: no two tokens are as likely as an xtc_threshold above 0.5");
  }
}

}  // namespace headrace::api
