// See params_json.h.
#include "api/params_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/error_json.h"
#include "api/in_quotes.h"
#include "headrace/request.h"

namespace headrace::api {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr double kMaxFloat = std::numeric_limits<float>::max();

void read_sampling(Fields& fields, SamplingParams& to) {
  fields.number("temperature", to.temperature, 0, kMaxFloat, "a number of at least 0");
  fields.number("top_p", to.top_p, 1e-30, 1, "a number above 0 and up to 1");
  fields.number("min_p", to.min_p, 0, 1, "a number from 0 to 1");
  fields.number("typical_p", to.typical_p, 1e-30, 1, "a number above 0 and up to 1");
  // -1 is vLLM's spelling of all.
  if (fields.integer("top_k", to.top_k, -1, kMaxInt32) && to.top_k < 0) to.top_k = 0;
  for (const char* name : {"repeat_penalty", "repetition_penalty"}) {
    fields.number(name, to.repetition_penalty, 1e-3, 1e3, "a number from 0.001 to 1000");
  }
  for (const char* name : {"repeat_last_n", "penalty_last_n"}) {
    fields.integer(name, to.penalty_last_n, -1, kMaxInt32);
  }
  constexpr const char* kShift = "a number from -1e9 to 1e9";
  fields.number("presence_penalty", to.presence_penalty, -1e9, 1e9, kShift);
  fields.number("frequency_penalty", to.frequency_penalty, -1e9, 1e9, kShift);
}

/// Any whole number of 64 bits; -1 is a fresh one, as llama-server has it.
void read_seed(Fields& fields, std::optional<uint64_t>& to) {
  const Json* const value = fields.find("seed");
  if (value == nullptr) return;
  if (value->is_number_unsigned()) {
    to = value->get<uint64_t>();
  } else if (const auto number = whole_number(*value)) {
    to = static_cast<uint64_t>(*number);
    if (*number == -1) to.reset();
  } else {
    fields.fail("seed", "a whole number of at most 64 bits", *value);
  }
}

/// {"1234": -5}: the key is a token id.
void read_logit_bias(Fields& fields, int64_t vocab_size,
                     std::vector<std::pair<TokenId, float>>& to) {
  constexpr std::string_view kName = "logit_bias";
  const Json* const value = fields.find(kName);
  if (value == nullptr) return;
  if (!value->is_object()) {
    return fields.fail(kName, "an object whose keys are token ids", *value);
  }
  to.clear();
  for (const auto& [key, bias] : value->items()) {
    TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    // "05" and "5" would be one id given twice.
    const bool is_id = error == std::errc() && std::to_string(id) == key;
    if (!is_id || id < 0 || id >= vocab_size) {
      return fields.fail({ErrorCode::invalid_argument,
                          "expected token ids from 0 to " + std::to_string(vocab_size - 1) +
                              " as keys, found " + in_quotes(key, 40),
                          std::string(kName), ""});
    }
    const double number = bias.is_number() ? bias.get<double>() : NAN;
    if (!(std::abs(number) <= 1e9)) {
      return fields.fail(wrong_value("logit_bias." + key, "a number from -1e9 to 1e9", bias));
    }
    to.emplace_back(id, static_cast<float>(number));
  }
}

void read_max_tokens(Fields& fields, GenerationParams& out) {
  // One setting under several names; -1 is llama-server's spelling of no limit. Whatever is past
  // the context is for the engine to refuse, which knows both numbers.
  std::string_view first;
  for (const std::string_view name :
       {"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"}) {
    int64_t value = 0;
    if (!fields.integer(name, value, -1, std::numeric_limits<int64_t>::max())) continue;
    out.has_max_tokens = true;
    if (!first.empty() && value != out.stop.max_tokens) {
      return fields.fail({ErrorCode::invalid_argument,
                          "contradicts " + std::string(first) + ": both are one setting",
                          std::string(name), ""});
    }
    first = name;
    out.max_tokens_name = name;
    out.stop.max_tokens = value;
  }
}

void read_stop_strings(Fields& fields, std::string_view name, const RequestLimits& limits,
                       std::vector<std::string>& to) {
  const Json* const value = fields.find(name);
  if (value == nullptr) return;
  const auto take = [&](const Json& text, std::string path) {
    if (!text.is_string()) return fields.fail(wrong_value(std::move(path), "a string", text));
    const auto& bytes = text.get_ref<const std::string&>();
    if (bytes.empty() || bytes.size() > limits.max_stop_string_bytes) {
      return fields.fail({ErrorCode::invalid_argument,
                          "a stop string must have 1 to " +
                              std::to_string(limits.max_stop_string_bytes) + " bytes, found " +
                              std::to_string(bytes.size()),
                          std::move(path), ""});
    }
    to.push_back(bytes);
  };
  if (value->is_string()) return take(*value, std::string(name));
  if (!value->is_array()) return fields.fail(name, "a string or an array of strings", *value);
  if (value->size() > limits.max_stop_strings) {
    return fields.fail({ErrorCode::invalid_argument,
                        "at most " + std::to_string(limits.max_stop_strings) +
                            " stop strings are allowed, found " + std::to_string(value->size()),
                        std::string(name), ""});
  }
  for (size_t i = 0; i < value->size(); ++i) {
    take((*value)[i], std::string(name) + "[" + std::to_string(i) + "]");
  }
}

void read_stop_ids(Fields& fields, const ParamsContext& context, std::vector<TokenId>& to) {
  constexpr std::string_view kName = "stop_token_ids";
  const Json* const value = fields.find(kName);
  if (value == nullptr) return;
  if (!value->is_array()) return fields.fail(kName, "an array of token ids", *value);
  if (value->size() > context.limits.max_stop_token_ids) {
    return fields.fail({ErrorCode::invalid_argument,
                        "at most " + std::to_string(context.limits.max_stop_token_ids) +
                            " ids are allowed, found " + std::to_string(value->size()),
                        std::string(kName), ""});
  }
  for (size_t i = 0; i < value->size(); ++i) {
    const auto id = whole_number((*value)[i]);
    if (!id || *id < 0 || *id >= context.vocab_size) {
      return fields.fail(wrong_value(
          "stop_token_ids[" + std::to_string(i) + "]",
          "a token id from 0 to " + std::to_string(context.vocab_size - 1), (*value)[i]));
    }
    to.push_back(static_cast<TokenId>(*id));
  }
}

void read_truncation(Fields& fields, int64_t& to) {
  constexpr const char* kName = "truncate_prompt_tokens";
  const bool is_set = fields.integer(kName, to, -1, std::numeric_limits<int64_t>::max());
  if (is_set && to == 0) {
    fields.fail(kName, "-1 (as many as fit) or at least 1", *fields.find(kName));
  }
}

void read_stream(Fields& fields, bool may_stream, GenerationParams& out) {
  fields.boolean("stream", out.is_streamed);
  if (out.is_streamed && !may_stream) {
    fields.refuse("stream", "answers are not streamed here", "leave it out");
  }
  const Json* const options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return fields.fail("stream_options", "an object", *options);
  if (!out.is_streamed) {
    return fields.fail({ErrorCode::invalid_argument, "is allowed only where stream is true",
                        "stream_options", ""});
  }
  Fields inner(*options, "stream_options");
  inner.boolean("include_usage", out.include_usage);
  inner.skip("include_obfuscation");  // a padding of chunks; there is none here
  if (auto read = inner.status(); !read.ok()) fields.fail(std::move(read).error());
  for (const auto& entry : options->get_ref<const Json::object_t&>()) {
    if (entry.second.is_null() || entry.first == "include_usage" ||
        entry.first == "include_obfuscation") {
      continue;
    }
    fields.note("stream_options", "has a field that is not known here");
    break;
  }
}

Result<void> read_adapter(const Json& entry, const std::string& path, const ParamsContext& context,
                          std::vector<AdapterUse>& uses) {
  if (!entry.is_object()) return wrong_value(path, "an object with id and scale", entry);
  const auto id = entry.find("id");
  if (id == entry.end()) return missing_value(path + ".id", "the number of an adapter");
  AdapterUse use;
  const auto& all = context.adapters;
  const auto number = whole_number(*id);
  const auto named =
      std::ranges::find(all, id->is_string() ? id->get<std::string>() : "", &ServedAdapter::name);
  if (number && *number >= 0 && *number < static_cast<int64_t>(all.size())) {
    use.adapter = static_cast<int32_t>(*number);
  } else if (id->is_string() && named != all.end()) {
    use.adapter = static_cast<int32_t>(named - all.begin());
  } else {
    const std::string known =
        all.empty() ? "there is none: open the model with --lora FILE"
                    : "there are " + std::to_string(all.size()) + " (GET /lora-adapters)";
    return Error{ErrorCode::invalid_argument, "no such adapter; " + known, path + ".id", ""};
  }
  use.strength = all[static_cast<size_t>(use.adapter)].strength;
  if (const auto scale = entry.find("scale"); scale != entry.end()) {
    constexpr double kMost = 1000;
    if (!scale->is_number() || std::abs(scale->get<double>()) > kMost) {
      return wrong_value(path + ".scale", "a number from -1000 to 1000", *scale);
    }
    use.strength = scale->get<float>();
  }
  if (std::ranges::find(uses, use.adapter, &AdapterUse::adapter) != uses.end()) {
    return Error{ErrorCode::invalid_argument, "the adapter is there twice", path + ".id", ""};
  }
  uses.push_back(use);
  return {};
}

/// llama-server's [{"id": 0, "scale": 0.5}]; here an id may also be a name. An empty list: none.
void read_adapters(Fields& fields, const ParamsContext& context, GenerationParams& out) {
  const Json* const list = fields.find("lora");
  if (list == nullptr) return;
  if (!list->is_array()) return fields.fail("lora", "a list of {\"id\", \"scale\"}", *list);
  if (list->size() > kMaxRequestAdapters) {
    return fields.fail(Error{ErrorCode::invalid_argument,
                             "at most " + std::to_string(kMaxRequestAdapters) +
                                 " adapters are allowed, found " + std::to_string(list->size()),
                             fields.path_of("lora"), ""});
  }
  std::vector<AdapterUse>& uses = out.adapters.emplace();
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = fields.path_of("lora") + "[" + std::to_string(i) + "]";
    auto read = read_adapter((*list)[i], path, context, uses);
    if (!read.ok()) return fields.fail(std::move(read).error());
  }
}

}  // namespace

void read_generation_params(Fields& fields, const ParamsContext& context, GenerationParams& out) {
  const RequestLimits& limits = context.limits;
  out.sampling = context.sampling;
  out.stop = context.stop;
  fields.text("model", out.model, limits.max_name_bytes);
  read_sampling(fields, out.sampling);
  read_sampler_params(fields, context, out);
  read_seed(fields, out.sampling.seed);
  read_logit_bias(fields, context.vocab_size, out.sampling.logit_bias);
  read_max_tokens(fields, out);
  fields.integer("min_tokens", out.stop.min_tokens, 0, kMaxInt32);
  fields.boolean("ignore_eos", out.stop.ignore_eos);
  read_stop_strings(fields, "stop", limits, out.stop_strings);
  if (fields.find("stop_sequences") != nullptr) {  // Anthropic's name
    if (!out.stop_strings.empty()) {
      fields.fail({ErrorCode::invalid_argument, "contradicts stop: both are one setting",
                   "stop_sequences", ""});
    }
    read_stop_strings(fields, "stop_sequences", limits, out.stop_strings);
  }
  read_stop_ids(fields, context, out.stop.stop_token_ids);
  fields.integer("n", out.num_choices, 1, kMaxChoices);
  fields.integer("prompt_logprobs", out.num_prompt_logprobs, 0, limits.max_logprobs);
  fields.integer("priority", out.priority, kMinPriority, kMaxPriority);
  fields.integer("timeout_ms", out.timeout_ms, 0, limits.max_timeout_ms);
  read_stream(fields, context.may_stream, out);
  read_truncation(fields, out.truncate_prompt_tokens);
  fields.boolean("allow_lighter_model", out.may_use_lighter_model);
  read_adapters(fields, context, out);
  fields.text("user", out.user, limits.max_name_bytes);
  fields.text("cache_salt", out.cache_salt, limits.max_name_bytes);
  read_unsupported_fields(fields);
}

Result<void> check_params(const GenerationParams& params, int64_t vocab_size) {
  auto valid = validate(params.sampling, params.stop, vocab_size);
  if (valid.ok()) return {};
  return named_for_request(std::move(valid).error(), "prompt");
}

}  // namespace headrace::api
