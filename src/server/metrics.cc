// See metrics.h.
#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "server/bound_metrics.h"
#include "server/engine_metrics.h"

namespace headrace::server {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;
using Labels = prometheus::Labels;

const Buckets& first_token_buckets() {
  static const Buckets buckets{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                               1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640};
  return buckets;
}
const Buckets& gap_buckets() {
  static const Buckets buckets{0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02,
                               0.025, 0.05,   0.075, 0.1,    0.15, 0.2,   0.3,
                               0.4,   0.5,    0.75,  1,      2.5,  5,     10};
  return buckets;
}
const Buckets& time_buckets() {
  static const Buckets buckets{0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,
                               10,   15,   20,  30,  40,  50,  60, 120, 240, 480};
  return buckets;
}
const Buckets& length_buckets() {
  static const Buckets buckets{1,   2,    5,    10,   20,    50,    100,   200,
                               500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
  return buckets;
}

HistogramShape shape_of(const prometheus::ClientMetric& metric) {
  HistogramShape out;
  for (const auto& bucket : metric.histogram.bucket) {
    out.le.push_back(bucket.upper_bound);
    out.count.push_back(static_cast<int64_t>(bucket.cumulative_count));
  }
  // The last boundary is infinite, which JSON has no number for.
  if (out.le.size() < out.count.size() + 1 && !out.le.empty()) out.le.pop_back();
  return out;
}

Labels labels_of(const std::string& model) {
  return {{"model_name", model}, {"engine", "0"}};
}

constexpr const char* kGonePhases[] = {"queue", "prefill", "decode"};  // of GonePhase
constexpr const char* kFinishedReasons[] = {"stop", "length", "abort", "error"};
constexpr const char* kRefusedStatuses[] = {"429", "503"};  // those that alerts look at

/// vLLM's words for it.
std::string finished_reason(FinishReason reason) {
  return reason == FinishReason::cancelled ? "abort" : std::string(finish_reason_name(reason));
}

}  // namespace

struct Metrics::Families {
  using HistogramFamily = prometheus::Family<prometheus::Histogram>;
  using CounterFamily = prometheus::Family<prometheus::Counter>;

  HistogramFamily& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
  CounterFamily& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  HistogramFamily& first_token =
      histogram("vllm:time_to_first_token_seconds", "From a request's arrival to its first token.");
  HistogramFamily& gap =
      histogram("vllm:inter_token_latency_seconds", "Between two tokens of one completion.");
  HistogramFamily& whole =
      histogram("vllm:e2e_request_latency_seconds", "From a request's arrival to its last byte.");
  HistogramFamily& queue =
      histogram("vllm:request_queue_time_seconds", "That a request waited in the engine.");
  HistogramFamily& prefill = histogram("vllm:request_prefill_time_seconds",
                                       "From a request's first step to its first token.");
  HistogramFamily& decode =
      histogram("vllm:request_decode_time_seconds", "From a completion's first token to its last.");
  HistogramFamily& prompt =
      histogram("vllm:request_prompt_tokens", "Tokens of a request's prompts.");
  HistogramFamily& generation =
      histogram("vllm:request_generation_tokens", "Tokens of a request's completions.");
  CounterFamily& success = counter("vllm:request_success_total", "Completions by how they ended.");
  CounterFamily& gone =
      counter("headrace:clients_gone_total", "Clients that went before their answer, by phase.");
  CounterFamily& refused =
      counter("headrace:requests_refused_total", "Requests that were refused, by status.");

  prometheus::Counter& finished(const std::string& model, const std::string& reason) {
    return success.Add({{"model_name", model}, {"engine", "0"}, {"finished_reason", reason}});
  }
  prometheus::Counter& gone_in(const std::string& model, const char* phase) {
    return gone.Add({{"model_name", model}, {"engine", "0"}, {"phase", phase}});
  }
};

Metrics::Metrics(const std::string& sensors_root)
    : sensors_(sensors_root), families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::add_model(const std::string& model) {
  Families& to = *families_;
  const Labels labels = labels_of(model);
  to.first_token.Add(labels, first_token_buckets());
  to.gap.Add(labels, gap_buckets());
  for (auto* family : {&to.whole, &to.queue, &to.prefill, &to.decode}) {
    family->Add(labels, time_buckets());
  }
  for (auto* family : {&to.prompt, &to.generation}) family->Add(labels, length_buckets());
  for (const char* each : kGonePhases) to.gone_in(model, each);
  for (const char* each : kFinishedReasons) to.finished(model, each);
  for (const char* each : kRefusedStatuses) to.refused.Add({{"status", each}});
}

void Metrics::count_answered(const RequestTrace& trace) {
  Families& to = *families_;
  const Labels labels = labels_of(trace.model);
  const auto observe = [&](Families::HistogramFamily& family, const Buckets& buckets,
                           double value) { family.Add(labels, buckets).Observe(value); };
  if (trace.first_token_ms > 0) {
    observe(to.first_token, first_token_buckets(), trace.first_token_ms * 1e-3);
  }
  observe(to.whole, time_buckets(), trace.sent_ms * 1e-3);
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  std::vector<bool> seen;  // prompts
  for (const TraceChoice& choice : trace.choices) {
    completion_tokens += choice.stats.completion_tokens;
    observe(to.decode, time_buckets(), choice.stats.decode_ms * 1e-3);
    to.finished(trace.model, finished_reason(choice.reason)).Increment();
    const auto prompt = static_cast<size_t>(choice.prompt);
    if (prompt >= seen.size()) seen.resize(prompt + 1);
    if (seen[prompt]) continue;
    seen[prompt] = true;
    prompt_tokens += choice.stats.prompt_tokens;
    observe(to.queue, time_buckets(), choice.stats.queue_ms * 1e-3);
    observe(to.prefill, time_buckets(), choice.stats.prefill_ms * 1e-3);
  }
  observe(to.prompt, length_buckets(), static_cast<double>(prompt_tokens));
  observe(to.generation, length_buckets(), static_cast<double>(completion_tokens));
}

void Metrics::count_unanswered(const RequestTrace& trace, size_t num_completions) {
  const std::string otherwise = trace.error.empty() ? "abort" : "error";
  size_t num_counted = 0;
  for (const TraceChoice& choice : trace.choices) {
    if (choice.reason == FinishReason::cancelled || num_counted == num_completions) continue;
    families_->finished(trace.model, finished_reason(choice.reason)).Increment();
    ++num_counted;
  }
  for (; num_counted < num_completions; ++num_counted) {
    families_->finished(trace.model, otherwise).Increment();
  }
}

void Metrics::observe_gaps(const std::string& model, std::span<const double> seconds) {
  if (seconds.empty()) return;
  auto& histogram = families_->gap.Add(labels_of(model), gap_buckets());
  for (const double each : seconds) histogram.Observe(each);
}

void Metrics::count_gone(const std::string& model, GonePhase phase) {
  families_->gone_in(model, kGonePhases[static_cast<int>(phase)]).Increment();
}

void Metrics::count_refused(int status) {
  families_->refused.Add({{"status", std::to_string(status)}}).Increment();
}

HistogramShape Metrics::first_token_seconds(const std::string& model) const {
  return shape_of(families_->first_token.Add(labels_of(model), first_token_buckets()).Collect());
}

HistogramShape Metrics::gap_seconds(const std::string& model) const {
  return shape_of(families_->gap.Add(labels_of(model), gap_buckets()).Collect());
}

std::string Metrics::text(const ModelSet* models, const HttpStats& http) const {
  std::vector<prometheus::MetricFamily> all = families_->registry.Collect();
  add_engine_metrics(models, http, all);
  add_temperature(sensors_, all);
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace headrace::server
