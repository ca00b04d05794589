// See engine_metrics.h.
#include "server/engine_metrics.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/os/threads.h"
#include "headrace/stats.h"
#include "server/bound_metrics.h"
#include "server/metric_family.h"

namespace headrace::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<ClientMetric::Label> model_labels(const ModelEntry& model) {
  return {{"model_name", model.name()}, {"engine", "0"}};
}

/// A number of EngineStats, by name.
struct StatsMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const EngineStats&);
};

constexpr StatsMetric kStatsMetrics[] = {
    {"vllm:num_requests_running", "Sequences that are computed.", MetricType::Gauge,
     [](const EngineStats& s) { return static_cast<double>(s.num_running); }},
    {"vllm:num_requests_waiting", "Sequences that wait.", MetricType::Gauge,
     [](const EngineStats& s) { return static_cast<double>(s.num_waiting); }},
    {"vllm:kv_cache_usage_perc", "Blocks of the KV cache in use, 1 is all.", MetricType::Gauge,
     [](const EngineStats& s) { return s.kv_usage(); }},
    {"headrace:num_requests_paused", "Sequences that wait for their readers.", MetricType::Gauge,
     [](const EngineStats& s) { return static_cast<double>(s.num_paused); }},
    {"headrace:waiting_tokens", "Of prompts not yet begun.", MetricType::Gauge,
     [](const EngineStats& s) { return static_cast<double>(s.waiting_tokens); }},
    {"headrace:batch_limit", "Most sequences that may run at once now.", MetricType::Gauge,
     [](const EngineStats& s) { return static_cast<double>(s.batch_limit); }},
    {"headrace:kv_token_slot_utilisation", "Live tokens over slots of blocks in use.",
     MetricType::Gauge, [](const EngineStats& s) { return s.token_slot_utilisation(); }},
    {"headrace:kv_byte_utilisation", "Bytes of blocks in use over all.", MetricType::Gauge,
     [](const EngineStats& s) { return s.kv_usage(); }},
    {"vllm:prompt_tokens_total", "Prompt tokens of requests that began.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.prompt_tokens); }},
    {"vllm:generation_tokens_total", "Tokens that were generated.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.generated_tokens); }},
    {"headrace:embeddings_total", "Vectors of texts, and scores of pairs, that were computed.",
     MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_embeddings); }},
    {"vllm:prefix_cache_queries_total", "Prompt tokens that were looked for in the prefix cache.",
     MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.prefix_query_tokens); }},
    {"vllm:prefix_cache_hits_total", "Of these, found.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.prefix_hit_tokens); }},
    {"vllm:num_preemptions_total", "Times that a sequence gave up its blocks.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.rung(MemoryRung::preempt)); }},
    {"headrace:kv_evictions_total", "Cached blocks that were written over.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.rung(MemoryRung::evict_prefixes)); }},
    {"headrace:steps_total", "Steps of the engine.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_steps); }},
    {"headrace:failed_steps_total", "Of these, that failed.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_failed_steps); }},
    {"headrace:requests_failed_total", "Requests that ended with an error.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_errors); }},
    {"headrace:requests_expired_total", "Of these, whose time had passed.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_expired); }},
    {"headrace:bad_logits_total", "Of these, whose logits were no numbers.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_bad_logits); }},
    {"headrace:requests_cancelled_total", "Completions that were cancelled.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_cancelled); }},
    {"headrace:reader_pauses_total", "Times that a sequence waited for its reader.",
     MetricType::Counter, [](const EngineStats& s) { return static_cast<double>(s.num_pauses); }},
    {"headrace:broken_invariants_total", "Faults of the engine's own books.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.num_broken_invariants); }},
    {"headrace:scheduling_seconds_total", "Planning and committing steps.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.scheduling_ns) * 1e-9; }},
    {"headrace:prompt_tokens_computed_total",
     "Tokens of prompts that were computed, those that were computed again among them.",
     MetricType::Counter, [](const EngineStats& s) { return static_cast<double>(s.prompt_rows); }},
    {"headrace:decode_seconds_total",
     "Steps of decoding: those that have one row of each sequence and none of a longer prompt.",
     MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.decode.ns) * 1e-9; }},
    {"vllm:spec_decode_num_draft_tokens_total",
     "Tokens that were guessed ahead of the model; 0, for it does not guess.", MetricType::Counter,
     [](const EngineStats&) { return 0.0; }},
    {"vllm:spec_decode_num_accepted_tokens_total",
     "Of these, that the model would have given; 0, for it does not guess.", MetricType::Counter,
     [](const EngineStats&) { return 0.0; }},
    {"headrace:forward_seconds_total", "In the model.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.forward_ns) * 1e-9; }},
    {"headrace:sampling_seconds_total", "Choosing tokens.", MetricType::Counter,
     [](const EngineStats& s) { return static_cast<double>(s.sampling_ns) * 1e-9; }},
};

void add_models(const ModelSet& models, std::vector<MetricFamily>& to) {
  std::vector<EngineStats> stats;
  for (const auto& each : models.all()) stats.push_back(each->stats());
  for (const StatsMetric& metric : kStatsMetrics) {
    FamilyOf family(metric.name, metric.help, metric.type);
    for (size_t i = 0; i < stats.size(); ++i) {
      family.add(model_labels(*models.all()[i]), metric.value(stats[i]));
    }
    to.push_back(family.take());
  }
  std::vector<BoundSample> beside_bounds;
  for (size_t i = 0; i < stats.size(); ++i) {
    const ModelEntry& model = *models.all()[i];
    beside_bounds.push_back({model.name(), model.bounds.get(), stats[i]});
  }
  add_bound_metrics(beside_bounds, to);
  FamilyOf rungs(
      "headrace:fallback_total",
      "Times that each way out of short memory was taken. drop_caches stays 0: besides the KV "
      "cache nothing is cached that could be dropped.",
      MetricType::Counter);
  FamilyOf rows("vllm:iteration_tokens_total", "Tokens of a step.", MetricType::Histogram);
  FamilyOf seconds("headrace:step_seconds", "Time of a step.", MetricType::Histogram);
  for (size_t i = 0; i < stats.size(); ++i) {
    const ModelEntry& model = *models.all()[i];
    for (size_t rung = 0; rung < kNumMemoryRungs; ++rung) {
      auto labels = model_labels(model);
      labels.push_back({"step", std::string(memory_rung_name(static_cast<MemoryRung>(rung)))});
      rungs.add(std::move(labels), static_cast<double>(stats[i].rungs[rung]));
    }
    rows.add_histogram(model_labels(model), stats[i].step_rows_histogram);
    seconds.add_histogram(model_labels(model), stats[i].step_seconds);
  }
  to.push_back(rungs.take());
  to.push_back(rows.take());
  to.push_back(seconds.take());
}

MetricFamily thread_times() {
  FamilyOf family("headrace:thread_seconds_total",
                  "Processor seconds by kind of thread: engine and compute are the model's, bodies "
                  "parse and tokenise, streams, answers and http send.",
                  MetricType::Counter);
  constexpr std::string_view kKinds[] = {"engine",  "compute", "bodies",
                                         "streams", "answers", "http"};
  double others = 0;
  for (const auto& [name, seconds] : thread_seconds()) {
    if (std::find(std::begin(kKinds), std::end(kKinds), name) == std::end(kKinds)) {
      others += seconds;
    } else {
      family.add({{"thread", name}}, seconds);
    }
  }
  family.add({{"thread", "others"}}, others);
  return family.take();
}

}  // namespace

void add_engine_metrics(const ModelSet* models, const HttpStats& http,
                        std::vector<MetricFamily>& to) {
  if (models != nullptr) add_models(*models, to);
  const auto add = [&](const char* name, const char* help, MetricType type, int64_t value) {
    to.push_back(FamilyOf(name, help, type).add({}, static_cast<double>(value)).take());
  };
  add("headrace:connections", "Open connections.", MetricType::Gauge, http.num_connections);
  add("headrace:requests_under_way", "HTTP requests that are not answered in whole.",
      MetricType::Gauge, http.num_exchanges);
  add("headrace:body_bytes", "Bytes of requests' bodies that are read or not yet taken.",
      MetricType::Gauge, http.body_bytes);
  add("headrace:refused_connections_total",
      "Connections that came when there were all that may be, probes not counted.",
      MetricType::Counter, http.refused_connections);
  add("headrace:slow_clients_total", "Clients that took nothing for too long.", MetricType::Counter,
      http.slow_clients);
  add("headrace:sent_bytes_total", "Bytes of replies.", MetricType::Counter, http.bytes_sent);
  to.push_back(thread_times());
}

}  // namespace headrace::server
