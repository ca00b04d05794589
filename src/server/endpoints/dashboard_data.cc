// GET /dashboard/data: what the dashboard shows, once a second.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/json.h"
#include "app/model_bounds.h"
#include "server/endpoints/endpoints.h"
#include "server/json_endpoint.h"
#include "server/replies.h"

namespace headrace::server {
namespace {

/// That the engine's thread has to tell of its blocks.
constexpr std::chrono::milliseconds kPatience{100};

api::Json shape_json(const HistogramShape& shape) {
  return {{"le", shape.le}, {"count", shape.count}};
}

template <class Histogram>
api::Json cumulative_json(const Histogram& histogram) {
  api::Json out = {{"le", histogram.bounds}, {"count", api::Json::array()}};
  int64_t sum = 0;
  for (const auto count : histogram.counts) {
    sum += static_cast<int64_t>(count);
    out["count"].push_back(sum);
  }
  return out;
}

api::Json kv_json(Engine& engine, const EngineStats& stats) {
  api::Json out = {{"usage", stats.kv_usage()},
                   {"token_slot_utilisation", stats.token_slot_utilisation()},
                   {"groups", api::Json::array()}};
  const auto maps = engine.kv_map(kPatience);
  for (size_t i = 0; i < stats.groups.size(); ++i) {
    const KvGroupStats& group = stats.groups[i];
    out["groups"].push_back({{"window", group.window},
                             {"block_tokens", group.block_tokens},
                             {"num_blocks", group.num_blocks},
                             {"held", group.num_held},
                             {"cached", group.num_cached},
                             {"map", i < maps.size() ? maps[i] : ""}});
  }
  return out;
}

/// Tokens a second that the machine allows now: as many sequences as run, each as long as they are
/// on average, and a prompt. Null where nothing was measured.
api::Json bound_json(const ModelEntry& model, const EngineStats& stats) {
  if (model.bounds == nullptr) {
    return {{"decode_tokens_per_second", nullptr},
            {"prefill_tokens_per_second", nullptr},
            {"fraction_of_bandwidth", nullptr}};
  }
  const int64_t num = std::max<int64_t>(stats.num_running - stats.num_paused, 1);
  int64_t live_tokens = 0;
  for (const KvGroupStats& group : stats.groups) {
    live_tokens = std::max(live_tokens, group.live_tokens);
  }
  const int64_t position = live_tokens / std::max<int64_t>(stats.num_running, 1);
  return {{"decode_tokens_per_second", model.bounds->decode_tokens_per_second(num, position)},
          {"prefill_tokens_per_second", model.bounds->prefill_tokens_per_second()},
          {"fraction_of_bandwidth", model.bounds->fraction_of_bandwidth(stats.recent_decode)}};
}

api::Json model_data(const ServerState& state, const ModelEntry& model) {
  const EngineStats stats = model.stats();
  api::Json rungs = api::Json::object();
  for (size_t i = 0; i < kNumMemoryRungs; ++i) {
    rungs[std::string(memory_rung_name(static_cast<MemoryRung>(i)))] = stats.rungs[i];
  }
  return {{"name", model.name()},
          {"running", stats.num_running},
          {"paused", stats.num_paused},
          {"waiting", stats.num_waiting},
          {"waiting_tokens", stats.waiting_tokens},
          {"batch_limit", stats.batch_limit},
          {"prompt_tokens", stats.prompt_tokens},
          {"computed_prompt_tokens", stats.prompt_rows},
          {"generated_tokens", stats.generated_tokens},
          {"steps", stats.num_steps},
          {"prefix_query_tokens", stats.prefix_query_tokens},
          {"prefix_hit_tokens", stats.prefix_hit_tokens},
          {"errors", stats.num_errors},
          {"cancelled", stats.num_cancelled},
          {"kv", kv_json(*model.engine, stats)},
          {"rungs", rungs},
          {"step_seconds", cumulative_json(stats.step_seconds)},
          {"ttft_seconds", shape_json(state.metrics.first_token_seconds(model.name()))},
          {"itl_seconds", shape_json(state.metrics.gap_seconds(model.name()))},
          {"bound", bound_json(model, stats)}};
}

}  // namespace

void dashboard_data(ServerState& state, ExchangePtr exchange) {
  const int64_t up_ns = state.clock.now_ns() - state.started_ns;
  api::Json out = {{"now_ms", state.clock.unix_seconds() * 1000},
                   {"uptime_s", static_cast<double>(up_ns) * 1e-9},
                   {"version", state.options.version},
                   {"models", api::Json::array()}};
  const auto models = state.models();
  for (const auto& each : models->all()) out["models"].push_back(model_data(state, *each));
  exchange->reply(json_reply(json_text(out)));
}

}  // namespace headrace::server
