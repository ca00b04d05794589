// See summary.h.
#include "app/load/summary.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

constexpr size_t kNumBuckets = 150;

double ms(int64_t ns) {
  return 1e-6 * static_cast<double>(ns);
}

void add_requests(LoadSummary& out, const LoadRecords& records, const LoadSlo& slo) {
  std::vector<double> ttft, itl, tpot, e2e, queue;
  for (const LoadRecord& request : records.requests) {
    ++out.num_requests;
    out.seconds = std::max(out.seconds, 1e-9 * static_cast<double>(request.end_ns));
    if (!request.is_ok()) {
      ++out.errors[std::string(error_code_name(*request.error))];
      continue;
    }
    ++out.num_ok;
    out.num_good += keeps(request, slo) ? 1 : 0;
    out.prompt_tokens += request.prompt_tokens;
    out.cached_tokens += request.stats.cached_tokens;
    out.output_tokens += static_cast<int64_t>(request.token_ns.size());
    out.num_preemptions += request.stats.num_preemptions;
    out.answers_hash ^= request.answer_hash;
    queue.push_back(request.queue_ms());
    e2e.push_back(request.e2e_ms());
    ttft.push_back(request.ttft_ms());
    const auto& times = request.token_ns;
    for (size_t i = 1; i < times.size(); ++i) itl.push_back(ms(times[i] - times[i - 1]));
    if (times.size() > 1) tpot.push_back(request.tpot_ms());
  }
  out.ttft_ms = distribution(std::move(ttft));
  out.itl_ms = distribution(std::move(itl));
  out.tpot_ms = distribution(std::move(tpot));
  out.e2e_ms = distribution(std::move(e2e));
  out.queue_ms = distribution(std::move(queue));
}

/// The length of the union of all requests' times in the engine.
double occupied_seconds(const std::vector<LoadRecord>& requests) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const LoadRecord& request : requests)
    spans.emplace_back(request.submitted_ns, request.end_ns);
  std::sort(spans.begin(), spans.end());
  int64_t sum = 0;
  int64_t covered = 0;
  for (const auto& [begin, end] : spans) {
    sum += std::max<int64_t>(end - std::max(begin, covered), 0);
    covered = std::max(covered, end);
  }
  return 1e-9 * static_cast<double>(sum);
}

void add_engine(LoadSummary& out, const EngineStats& before, const EngineStats& after) {
  out.num_steps = after.num_steps - before.num_steps;
  out.num_failed_steps = after.num_failed_steps - before.num_failed_steps;
  if (out.num_steps > 0) {
    const auto steps = static_cast<double>(out.num_steps);
    out.tokens_per_step =
        static_cast<double>(after.generated_tokens - before.generated_tokens) / steps;
    out.scheduling_us = 1e3 * ms(after.scheduling_ns - before.scheduling_ns) / steps;
    out.forward_ms = ms(after.forward_ns - before.forward_ns) / steps;
    out.sampling_ms = ms(after.sampling_ns - before.sampling_ns) / steps;
  }
  const int64_t looked_for = after.prefix_query_tokens - before.prefix_query_tokens;
  const int64_t found = after.prefix_hit_tokens - before.prefix_hit_tokens;
  if (looked_for > 0) {
    out.prefix_hit_rate = static_cast<double>(found) / static_cast<double>(looked_for);
  }
  for (size_t i = 0; i < kNumMemoryRungs; ++i) out.rungs[i] = after.rungs[i] - before.rungs[i];
}

void add_samples(LoadSummary& out, const std::vector<LoadSample>& samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    const LoadSample& sample = samples[i];
    const int64_t end_ns = i + 1 < samples.size() ? samples[i + 1].ns : sample.ns;
    const double seconds = 1e-9 * static_cast<double>(end_ns - sample.ns);
    out.running.add(static_cast<double>(sample.num_running), seconds);
    out.waiting.add(static_cast<double>(sample.num_waiting + sample.num_held_back), seconds);
    out.kv_usage.add(sample.kv_usage, seconds);
    if (sample.kv_usage > 0) out.slot_utilisation.add(sample.slot_utilisation, seconds);
    if (sample.num_steps > 0) {
      out.most_per_step = std::max(out.most_per_step, static_cast<double>(sample.num_tokens) /
                                                          static_cast<double>(sample.num_steps));
    }
  }
}

}  // namespace

bool keeps(const LoadRecord& request, const LoadSlo& slo) {
  if (!request.is_ok()) return false;
  if (slo.ttft_ms && request.ttft_ms() > *slo.ttft_ms) return false;
  if (slo.e2e_ms && request.e2e_ms() > *slo.e2e_ms) return false;
  const auto& times = request.token_ns;
  if (slo.tpot_ms && times.size() > 1 && request.tpot_ms() > *slo.tpot_ms) return false;
  for (size_t i = 1; slo.itl_ms && i < times.size(); ++i) {
    if (ms(times[i] - times[i - 1]) > *slo.itl_ms) return false;
  }
  return true;
}

LoadSummary summarize_load(const LoadRecords& records, const LoadSlo& slo) {
  LoadSummary out;
  add_requests(out, records, slo);
  out.occupied_seconds = occupied_seconds(records.requests);
  add_engine(out, records.before, records.after);
  add_samples(out, records.samples);
  if (out.seconds > 0) out.reading_share = records.reading_seconds / out.seconds;
  out.series = load_series(records.samples, out.seconds, kNumBuckets);
  return out;
}

}  // namespace headrace
