// The body of llama-server's POST /completion; see prepared_request.h.
#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "api/fit_prompt.h"
#include "api/json_body.h"
#include "api/prepare_parts.h"

namespace headrace::api {
namespace {

/// Its list of pairs: [[15043, 1.0], [29871, false]]; false forbids, and of an id that is there
/// twice the last one counts. Turned into the object that all others have, with its limit; nothing
/// where it is none.
Result<std::optional<Json>> with_bias_object(const Json& body, const RequestLimits& limits) {
  const auto bias = body.find("logit_bias");
  if (bias == body.end() || !bias->is_array()) return std::optional<Json>();
  if (bias->size() > limits.max_object_keys) {
    return Error{ErrorCode::invalid_argument,
                 "at most " + std::to_string(limits.max_object_keys) +
                     " tokens are allowed, found " + std::to_string(bias->size()),
                 "logit_bias", ""};
  }
  Json out = body;
  Json& object = out["logit_bias"] = Json::object();
  // Not the object's own access by key, which looks among all before it.
  auto& entries = static_cast<Json::object_t::Container&>(object.get_ref<Json::object_t&>());
  std::map<int64_t, size_t> places;
  for (size_t i = 0; i < bias->size(); ++i) {
    const Json& pair = (*bias)[i];
    const auto path = [&] { return "logit_bias[" + std::to_string(i) + "]"; };
    if (!pair.is_array() || pair.size() != 2) {
      return wrong_value(path(), "a token id and a number", pair);
    }
    const auto id = whole_number(pair[0]);
    if (!id) return wrong_value(path() + "[0]", "a token id", pair[0]);
    constexpr double kNever = -1e9;
    Json value = pair[1] == false ? Json(kNever) : pair[1];
    if (const auto [place, is_new] = places.try_emplace(*id, entries.size()); is_new) {
      entries.emplace_back(std::to_string(*id), std::move(value));
    } else {
      entries[place->second].second = std::move(value);
    }
  }
  return std::optional<Json>(std::move(out));
}

void read_ignored(Fields& fields) {
  int64_t slot = -1;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (fields.integer("id_slot", slot, -1, kMax) && slot >= 0) {
    fields.note("id_slot", "does nothing: prefixes are found wherever they are");
  }
  for (const std::string_view name :
       {"n_keep", "n_discard", "n_cache_reuse", "t_max_predict_ms", "n_indent", "min_keep"}) {
    const Json* const value = fields.find(name);
    if (value == nullptr || *value == 0 || *value == -1) continue;
    fields.note(name, "is not built in");
  }
  for (const std::string_view name : {"samplers", "response_fields"}) {
    if (fields.find(name) != nullptr) fields.note(name, "is not built in");
  }
  for (const std::string_view name : {"post_sampling_probs", "return_progress"}) {
    bool on = false;
    if (fields.boolean(name, on) && on) fields.note(name, "is not built in");
  }
  fields.skip("timings_per_token");
}

/// Whether it is one prompt of ids and texts: [12, "abc", 34].
bool is_mixed(const Json& prompt) {
  if (!prompt.is_array()) return false;
  const auto has = [&](const auto& is) { return std::any_of(prompt.begin(), prompt.end(), is); };
  return has([](const Json& part) { return part.is_number(); }) &&
         has([](const Json& part) { return part.is_string(); });
}

Result<std::vector<Prompt>> read_mixed(const Json& parts, const ServedModel& model,
                                       const GenerationParams& params) {
  const auto most = most_prompt_tokens(model, params);
  Prompt prompt;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_string()) {
      HEADRACE_TRY(append_token_id(parts[i], "prompt[" + std::to_string(i) + "]", model.vocab_size,
                                   prompt.ids));
      continue;
    }
    const EncodeOptions options{.add_special = i == 0, .parse_special = true};
    const auto& text = parts[i].get_ref<const std::string&>();
    if (!most) HEADRACE_TRY(check_prompt_bytes(model, text.size(), "prompt"));
    const std::string_view end = most ? end_of_text(model, text, *most) : text;
    HEADRACE_ASSIGN(const auto ids, model.tokenizer->encode(end, options));
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
  }
  return std::vector<Prompt>{std::move(prompt)};
}

struct LlamaRequest {
  GenerationParams params;
  std::vector<Prompt> prompts;
  bool returns_tokens = false;
  bool caches_prompt = true;
  std::vector<std::string> warnings;
};

Result<LlamaRequest> parse_llama(const Json& body, const ServedModel& model) {
  const ParamsContext context = params_context(model);
  Fields fields(body);
  LlamaRequest out;
  read_generation_params(fields, context, out.params);
  if (fields.integer("n_cmpl", out.params.num_choices, 1, kMaxChoices)) {
    if (fields.find("n") != nullptr) fields.fail("n_cmpl", "n or n_cmpl", *fields.find("n_cmpl"));
  }
  int32_t num_probs = 0;
  if (fields.integer("n_probs", num_probs, 0, context.limits.max_logprobs) && num_probs > 0) {
    out.params.num_logprobs = num_probs;
  }
  if (out.params.num_prompt_logprobs >= 0) {
    fields.refuse("prompt_logprobs", "is not told here", "use /v1/completions");
  }
  fields.boolean("return_tokens", out.returns_tokens);
  fields.boolean("cache_prompt", out.caches_prompt);
  read_ignored(fields);
  const Json* const prompt = fields.find("prompt");
  HEADRACE_TRY(fields.status());
  if (prompt == nullptr) return missing_value("prompt", "a string or an array of token ids");
  HEADRACE_ASSIGN(out.prompts, is_mixed(*prompt) ? read_mixed(*prompt, model, out.params)
                                                 : read_prompts(*prompt, context));
  HEADRACE_TRY(check_num_choices(out.prompts.size(), out.params, context.limits));
  HEADRACE_TRY(check_params(out.params, context.vocab_size));
  out.warnings = fields.unknown();
  return out;
}

Result<void> fill_llama(const Json& body, const ServedModel& model, PreparedRequest& out) {
  if (!body.is_object()) return wrong_value(std::string(kBody), "an object", body);
  HEADRACE_ASSIGN(const auto changed, with_bias_object(body, model.limits));
  HEADRACE_ASSIGN(LlamaRequest request, parse_llama(changed ? *changed : body, model));
  out.params = std::move(request.params);
  out.goes_on = true;
  out.keeps_tokens = request.returns_tokens;
  HEADRACE_TRY(check_model(model, out));
  Json texts = Json::array();
  // Who uses this endpoint writes control tokens by hand.
  const EncodeOptions options{true, true};
  for (const Prompt& prompt : request.prompts) {
    HEADRACE_ASSIGN(auto ids, prompt_ids(prompt, options, model, out.params,
                                         name_of_prompt(request.prompts, prompt), out.warnings));
    const bool is_whole = prompt.text && !most_prompt_tokens(model, out.params);
    texts.push_back(is_whole ? *prompt.text : model.tokenizer->decode(ids, false));
    add_prompt(model, std::move(ids), out).use_prefix_cache = request.caches_prompt;
  }
  out.repeated = std::make_shared<const Json>(Json{{"prompts", std::move(texts)}});
  out.warnings.insert(out.warnings.end(), request.warnings.begin(), request.warnings.end());
  return {};
}

}  // namespace

Result<PreparedRequest> prepare_llama(const Json& body, const ServedModel& model,
                                      const Clock& clock) {
  const int64_t begin_ns = clock.now_ns();
  PreparedRequest out;
  HEADRACE_TRY(fill_llama(body, model, out));
  out.tokenize_ms = static_cast<double>(clock.now_ns() - begin_ns) * 1e-6;
  return out;
}

}  // namespace headrace::api
