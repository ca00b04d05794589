// See convert.h.
#include "bindings/python/native/convert.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "api/limits.h"
#include "text/breaker_tokens.h"

namespace headrace::python {
namespace {

namespace py = pybind11;

/// Reads `source[name]`, or an attribute, into `to`, unless it is None.
template <class Wire, class To>
void put(To& to, const py::object& value) {
  if (!value.is_none()) to = static_cast<To>(value.cast<Wire>());
}

template <class Wire, class To>
void put_item(To& to, const py::dict& from, const char* name) {
  if (from.contains(name)) put<Wire>(to, py::object(from[name]));
}

/// Numbers past the range of float become infinite, which the engine refuses by name.
float float_of(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (value > kMost) return std::numeric_limits<float>::infinity();
  if (value < -kMost) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

/// Of any size: what does not fit becomes the nearest that does, which the engine judges.
template <class T>
T count_of(const py::object& value) {
  const py::int_ least(std::numeric_limits<T>::min());
  const py::int_ most(std::numeric_limits<T>::max());
  if (value < least) return std::numeric_limits<T>::min();
  if (value > most) return std::numeric_limits<T>::max();
  return value.cast<T>();
}

/// Reads the fields of a SamplingParams.
class Fields {
 public:
  explicit Fields(const py::handle& params) : params_(params) {}

  void real(const char* name, float& to) const {
    if (const py::object value = get(name); !value.is_none()) to = float_of(value.cast<double>());
  }
  template <class T>
  void count(const char* name, T& to) const {
    if (const py::object value = get(name); !value.is_none()) to = count_of<T>(value);
  }
  py::object get(const char* name) const { return params_.attr(name); }

 private:
  py::handle params_;
};

/// [(id, logprob, text)]
py::object token_logprob(const TokenLogprob& token, const Tokenizer& tokenizer) {
  const bool is_known = token.id >= 0 && token.id < tokenizer.vocab_size();
  const std::string bytes = is_known ? tokenizer.bytes(token.id) : std::string();
  const auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), "replace"));
  if (!text) throw py::error_already_set();
  return py::make_tuple(token.id, token.logprob, text);
}

/// (id, logprob, text, [top])
py::object token_record(const TokenLogprob& token, const std::vector<TokenLogprob>& top,
                        const Tokenizer& tokenizer) {
  py::list others;
  for (const TokenLogprob& other : top) others.append(token_logprob(other, tokenizer));
  return py::make_tuple(token_logprob(token, tokenizer), others);
}

py::object token_record(const TokenEvent& token, const Tokenizer& tokenizer) {
  return token_record(TokenLogprob{token.id, token.logprob}, token.top, tokenizer);
}

py::object reason_of(const std::optional<FinishReason>& reason) {
  if (!reason) return py::none();
  const std::string_view name = finish_reason_name(*reason);
  return py::str(name.data(), name.size());
}

py::dict timings_of(const RequestStats& stats) {
  py::dict out;
  out["queue_ms"] = stats.queue_ms;
  out["prefill_ms"] = stats.prefill_ms;
  out["decode_ms"] = stats.decode_ms;
  out["sample_ms"] = stats.sample_ms;
  out["num_preemptions"] = stats.num_preemptions;
  out["prefill_tokens_per_second"] = stats.prefill_tokens_per_second();
  out["decode_tokens_per_second"] = stats.decode_tokens_per_second();
  return out;
}

py::dict choice_of(const ChoiceState& choice, const Tokenizer& tokenizer) {
  py::list ids;
  py::list records;
  for (const TokenEvent& token : choice.tokens) {
    ids.append(token.id);
    records.append(token_record(token, tokenizer));
  }
  py::dict out;
  out["text"] = choice.text;
  out["token_ids"] = ids;
  out["tokens"] = records;
  out["finish_reason"] = reason_of(choice.reason);
  out["stop_token"] = choice.stop_token >= 0 ? py::cast(choice.stop_token) : py::none();
  out["stop_string"] = choice.stop_string ? py::cast(*choice.stop_string) : py::none();
  out["seed"] = choice.stats.seed;
  out["model"] = choice.stats.model;
  out["cached_tokens"] = choice.stats.cached_tokens;
  out["timings"] = timings_of(choice.stats);
  return out;
}

py::dict group_of(const KvGroupStats& group) {
  py::dict out;
  out["window"] = group.window;
  out["block_tokens"] = group.block_tokens;
  out["num_blocks"] = group.num_blocks;
  out["num_held"] = group.num_held;
  out["num_cached"] = group.num_cached;
  out["live_tokens"] = group.live_tokens;
  out["block_bytes"] = group.block_bytes;
  return out;
}

py::object exception_of(const Error& error) {
  const std::string code(error_code_name(error.code));
  return py::module_::import("headrace._errors")
      .attr("make_error")(code, error.message, error.where, error.hint);
}

}  // namespace

void raise_error(const Error& error) {
  const py::object exception = exception_of(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

OpenOptions open_options_of(const py::dict& from) {
  OpenOptions to;
  put_item<std::string>(to.isa, from, "isa");
  put_item<int>(to.num_threads, from, "threads");
  put_item<bool>(to.pin, from, "pin");
  put_item<bool>(to.pack, from, "pack");
  put_item<bool>(to.full_head, from, "full_head");
  put_item<std::string>(to.quantize, from, "quantize");
  put_item<std::string>(to.kv_type, from, "kv_type");
  put_item<int64_t>(to.context, from, "context");
  put_item<int64_t>(to.block_tokens, from, "block_tokens");
  put_item<int64_t>(to.chunk_tokens, from, "chunk_tokens");
  put_item<std::string>(to.pre_tokenizer, from, "pre_tokenizer");
  put_item<std::string>(to.chat_template, from, "chat_template");
  put_item<std::string>(to.name, from, "name");
  if (from.contains("adapters")) {
    for (const auto& [name, path] : py::dict(from["adapters"])) {
      to.adapters.push_back({name.cast<std::string>(), path.cast<std::string>()});
    }
  }
  return to;
}

EngineOptions engine_options_of(const py::dict& from) {
  EngineOptions to;
  put_item<int64_t>(to.max_sequences, from, "max_sequences");
  put_item<int64_t>(to.kv_tokens, from, "kv_tokens");
  put_item<uint64_t>(to.kv_bytes, from, "kv_bytes");
  put_item<bool>(to.prefix_cache, from, "prefix_cache");
  put_item<int64_t>(to.max_waiting, from, "max_waiting");
  put_item<int64_t>(to.max_logprobs, from, "max_logprobs");
  put_item<int64_t>(to.max_wait_ms, from, "max_wait_ms");
  put_item<int64_t>(to.aging_ms, from, "aging_ms");
  put_item<double>(to.max_slowdown, from, "max_slowdown");
  return to;
}

Request request_of(const py::handle& params, const SamplingParams& defaults) {
  const Fields from(params);
  Request to;
  SamplingParams& sampling = to.sampling;
  sampling = defaults;
  from.real("temperature", sampling.temperature);
  from.count("top_k", sampling.top_k);
  from.real("top_p", sampling.top_p);
  from.real("min_p", sampling.min_p);
  from.real("typical_p", sampling.typical_p);
  from.real("repetition_penalty", sampling.repetition_penalty);
  from.real("presence_penalty", sampling.presence_penalty);
  from.real("frequency_penalty", sampling.frequency_penalty);
  from.count("penalty_last_n", sampling.penalty_last_n);
  from.real("dry_multiplier", sampling.dry_multiplier);
  from.real("dry_base", sampling.dry_base);
  from.count("dry_allowed_length", sampling.dry_allowed_length);
  from.count("dry_penalty_last_n", sampling.dry_penalty_last_n);
  from.real("xtc_probability", sampling.xtc_probability);
  from.real("xtc_threshold", sampling.xtc_threshold);
  from.count("mirostat", sampling.mirostat);
  from.real("mirostat_tau", sampling.mirostat_tau);
  from.real("mirostat_eta", sampling.mirostat_eta);
  if (const py::object seed = from.get("seed"); !seed.is_none()) {
    sampling.seed = seed.cast<uint64_t>();
  }
  for (const auto& [id, bias] : py::dict(from.get("logit_bias"))) {
    sampling.logit_bias.emplace_back(count_of<TokenId>(py::reinterpret_borrow<py::object>(id)),
                                     float_of(bias.cast<double>()));
  }
  from.count("max_tokens", to.stop.max_tokens);
  from.count("min_tokens", to.stop.min_tokens);
  for (const py::handle id : from.get("stop_token_ids")) {
    to.stop.stop_token_ids.push_back(count_of<TokenId>(py::reinterpret_borrow<py::object>(id)));
  }
  to.stop.ignore_eos = from.get("ignore_eos").cast<bool>();
  from.count("n", to.num_choices);
  from.count("logprobs", to.num_logprobs);
  from.count("prompt_logprobs", to.num_prompt_logprobs);
  from.count("priority", to.priority);
  from.count("timeout_ms", to.timeout_ms);
  to.cache_scope = from.get("cache_scope").cast<std::string>();
  to.use_prefix_cache = from.get("use_prefix_cache").cast<bool>();
  return to;
}

std::vector<AdapterUse> adapters_of(const py::handle& params, const ModelInfo& model) {
  std::vector<AdapterUse> out;
  for (const auto& [key, strength] : py::dict(Fields(params).get("adapters"))) {
    const auto name = key.cast<std::string>();
    const auto found = std::ranges::find(model.adapters, name, &AdapterInfo::name);
    if (found == model.adapters.end()) {
      raise_error({ErrorCode::not_found, "the model was opened with no adapter '" + name + "'",
                   "adapters", "give it to LLM(adapters={NAME: FILE})"});
    }
    out.push_back(
        {static_cast<int32_t>(found - model.adapters.begin()), float_of(strength.cast<double>())});
  }
  return out;
}

std::vector<std::string> breakers_of(const py::handle& params) {
  const py::object given = Fields(params).get("dry_sequence_breakers");
  if (given.is_none()) return default_breakers();
  auto texts = given.cast<std::vector<std::string>>();
  if (auto checked = check_breakers(texts); !checked.ok()) {
    checked.error().code = ErrorCode::out_of_range;
    checked.error().where = "dry_sequence_breakers";
    raise_error(checked.error());
  }
  return texts;
}

void check_counts(const py::handle& params) {
  constexpr int32_t kMaxLogprobs = api::RequestLimits{}.max_logprobs;
  struct Range {
    const char* name;
    int64_t least, most;
  };
  for (const auto& [name, least, most] :
       {Range{"n", 1, kMaxChoices}, Range{"logprobs", 0, kMaxLogprobs},
        Range{"prompt_logprobs", 0, kMaxLogprobs}, Range{"priority", kMinPriority, kMaxPriority}}) {
    int64_t value = least;
    Fields(params).count(name, value);
    if (value >= least && value <= most) continue;
    raise_error({ErrorCode::out_of_range,
                 "expected " + std::to_string(least) + " to " + std::to_string(most) + ", found " +
                     std::to_string(value),
                 name, ""});
  }
}

RunOptions run_options_of(const py::handle& params, const Request& request) {
  RunOptions to;
  to.num_choices = request.num_choices;
  to.min_tokens = request.stop.min_tokens;
  to.stop_strings = Fields(params).get("stop").cast<std::vector<std::string>>();
  const api::RequestLimits limits;
  if (to.stop_strings.size() > limits.max_stop_strings) {
    raise_error({ErrorCode::out_of_range,
                 "expected at most " + std::to_string(limits.max_stop_strings) +
                     " strings, found " + std::to_string(to.stop_strings.size()),
                 "stop", ""});
  }
  for (const std::string& string : to.stop_strings) {
    if (!string.empty() && string.size() <= limits.max_stop_string_bytes) continue;
    raise_error({ErrorCode::out_of_range,
                 "expected strings of 1 to " + std::to_string(limits.max_stop_string_bytes) +
                     " bytes, found one of " + std::to_string(string.size()),
                 "stop", ""});
  }
  return to;
}

py::dict info_of(const OpenedModel& opened) {
  const ModelInfo& info = opened.model->info();
  py::dict out;
  out["name"] = info.name;
  out["architecture"] = info.architecture;
  out["path"] = opened.path;
  out["context_length"] = info.context_length;
  out["vocab_size"] = info.vocab_size;
  out["num_layers"] = info.num_layers;
  py::list adapters;
  for (const AdapterInfo& adapter : info.adapters) adapters.append(adapter.name);
  out["adapters"] = adapters;
  out["embedding_length"] = info.embedding_length;
  out["num_parameters"] = info.num_parameters;
  out["num_active_parameters"] = info.num_active_parameters;
  out["weight_bytes"] = info.weight_bytes;
  out["end_tokens"] = info.end_tokens;
  out["has_chat_template"] = opened.chat_template.has_value();
  out["isa"] = std::string(isa_name(opened.isa));
  out["kv_type"] = std::string(kv_type_name(opened.kv_type));
  return out;
}

py::dict state_of(const RunState& state, const Tokenizer& tokenizer) {
  py::list choices;
  for (const ChoiceState& choice : state.choices) choices.append(choice_of(choice, tokenizer));
  py::list prompt_records;
  for (const PromptLogprob& token : state.prompt_logprobs) {
    prompt_records.append(token_record(token.token, token.top, tokenizer));
  }
  py::dict out;
  out["choices"] = choices;
  out["prompt_tokens"] = prompt_records;
  out["error"] = state.error ? exception_of(*state.error) : py::none();
  return out;
}

py::list pieces_of(const std::vector<Piece>& pieces, const Tokenizer& tokenizer) {
  py::list out;
  for (const Piece& piece : pieces) {
    out.append(py::make_tuple(piece.choice, piece.text,
                              piece.token ? token_record(*piece.token, tokenizer) : py::none(),
                              reason_of(piece.reason)));
  }
  return out;
}

py::dict stats_of(const EngineStats& stats) {
  py::dict out;
  out["num_running"] = stats.num_running;
  out["num_paused"] = stats.num_paused;
  out["num_waiting"] = stats.num_waiting;
  out["waiting_tokens"] = stats.waiting_tokens;
  out["batch_limit"] = stats.batch_limit;
  py::list groups;
  for (const KvGroupStats& group : stats.groups) groups.append(group_of(group));
  out["groups"] = groups;
  out["num_steps"] = stats.num_steps;
  out["num_failed_steps"] = stats.num_failed_steps;
  out["step_rows"] = stats.step_rows;
  out["prompt_tokens"] = stats.prompt_tokens;
  out["generated_tokens"] = stats.generated_tokens;
  out["prefix_query_tokens"] = stats.prefix_query_tokens;
  out["prefix_hit_tokens"] = stats.prefix_hit_tokens;
  out["num_stopped"] = stats.num_stopped;
  out["num_length"] = stats.num_length;
  out["num_cancelled"] = stats.num_cancelled;
  out["num_errors"] = stats.num_errors;
  out["num_expired"] = stats.num_expired;
  out["num_bad_logits"] = stats.num_bad_logits;
  out["num_pauses"] = stats.num_pauses;
  out["num_broken_invariants"] = stats.num_broken_invariants;
  py::dict rungs;
  for (size_t i = 0; i < kNumMemoryRungs; ++i) {
    const std::string name(memory_rung_name(static_cast<MemoryRung>(i)));
    rungs[py::str(name)] = stats.rungs[i];
  }
  out["memory_rungs"] = rungs;
  out["scheduling_ms"] = static_cast<double>(stats.scheduling_ns) / 1e6;
  out["forward_ms"] = static_cast<double>(stats.forward_ns) / 1e6;
  out["sampling_ms"] = static_cast<double>(stats.sampling_ns) / 1e6;
  out["token_slot_utilisation"] = stats.token_slot_utilisation();
  out["kv_usage"] = stats.kv_usage();
  return out;
}

}  // namespace headrace::python
