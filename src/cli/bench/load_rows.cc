// See load_rows.h.
#include "cli/bench/load_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace headrace::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

const std::vector<std::pair<const char*, Distribution LoadSummary::*>>& distributions() {
  static const std::vector<std::pair<const char*, Distribution LoadSummary::*>> kAll = {
      {"ttft", &LoadSummary::ttft_ms},   {"itl", &LoadSummary::itl_ms},
      {"tpot", &LoadSummary::tpot_ms},   {"e2e", &LoadSummary::e2e_ms},
      {"queue", &LoadSummary::queue_ms},
  };
  return kAll;
}

OrderedJson number(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

void add_distribution(OrderedJson& out, const std::string& name, const Distribution& from) {
  const std::pair<const char*, double> all[] = {{"mean", from.mean}, {"p50", from.p50},
                                                {"p90", from.p90},   {"p95", from.p95},
                                                {"p99", from.p99},   {"max", from.max}};
  for (const auto& [what, value] : all) {
    out[name + "_" + what + "_ms"] = from.count > 0 ? number(value) : OrderedJson(nullptr);
  }
}

void add_mean(OrderedJson& out, const std::string& name, const TimeMean& from) {
  out[name + "_mean"] = from.is_empty() ? OrderedJson(nullptr) : number(from.mean());
  out[name + "_min"] = from.is_empty() ? OrderedJson(nullptr) : number(from.min());
  out[name + "_max"] = from.is_empty() ? OrderedJson(nullptr) : number(from.max());
}

void add_plan(OrderedJson& out, const LoadResult& result) {
  const LoadPlan& plan = result.plan;
  const LoadSpec& spec = plan.spec;
  const bool is_open = plan.pace.rate > 0;
  out["load"] = load_name(plan);
  out["batching"] = load_batching_name(plan.batching);
  out["rate"] = is_open ? OrderedJson(plan.pace.rate) : OrderedJson(nullptr);
  out["concurrency"] = is_open ? OrderedJson(nullptr) : OrderedJson(plan.pace.concurrency);
  out["duration_asked_s"] =
      plan.pace.seconds > 0 ? OrderedJson(plan.pace.seconds) : OrderedJson(nullptr);
  out["input_len"] = spec.input.text();
  out["output_len"] = spec.output.text();
  out["prefix_len"] = spec.prefix_tokens;
  out["prefixes"] = spec.num_prefixes;
  out["turns"] = spec.num_turns;
  out["seed"] = spec.seed;
  out["temperature"] = plan.pace.temperature;
  out["warmup"] = plan.num_warm_up;
  out["max_sequences"] = plan.max_sequences;
  out["prefix_cache"] = plan.prefix_cache;
  out["max_wait_ms"] = plan.max_wait_ms;
  out["max_slowdown"] = plan.max_slowdown;
  out["kv_tokens"] = result.kv_tokens;
  out["kv_bytes"] = result.kv_bytes;
}

void add_throughput(OrderedJson& out, const LoadResult& result) {
  const LoadSummary& summary = result.summary;
  out["conversations"] = result.num_conversations;
  out["requests"] = summary.num_requests;
  out["completed"] = summary.num_ok;
  out["failed"] = summary.num_requests - summary.num_ok;
  out["errors"] = summary.errors;
  out["duration_s"] = summary.seconds;
  out["occupied_s"] = summary.occupied_seconds;
  out["processor_s"] = result.processor_seconds;
  out["prompt_tokens"] = summary.prompt_tokens;
  out["cached_tokens"] = summary.cached_tokens;
  out["output_tokens"] = summary.output_tokens;
  out["requests_per_s"] = summary.per_second(summary.num_ok);
  out["output_tokens_per_s"] = summary.per_second(summary.output_tokens);
  out["total_tokens_per_s"] = summary.per_second(summary.prompt_tokens + summary.output_tokens);
  for (const auto& [name, member] : distributions()) {
    add_distribution(out, name, summary.*member);
  }
  const LoadSlo& slo = result.plan.slo;
  const bool has_slo = !slo.is_empty() && summary.num_requests > 0;
  out["slo"] = has_slo ? OrderedJson(slo.text()) : OrderedJson(nullptr);
  out["good"] = has_slo ? OrderedJson(summary.num_good) : OrderedJson(nullptr);
  out["good_share"] = has_slo ? number(static_cast<double>(summary.num_good) /
                                       static_cast<double>(summary.num_requests))
                              : OrderedJson(nullptr);
  out["good_per_s"] = has_slo ? number(summary.per_second(summary.num_good)) : OrderedJson(nullptr);
}

void add_ideal(OrderedJson& out, const LoadResult& result) {
  const char* const keys[] = {"ideal_s",
                              "fraction_of_ideal",
                              "ideal_at_batches_s",
                              "fraction_at_batches",
                              "bound_s",
                              "fraction_of_bound",
                              "ideal_batch",
                              "ideal_prompt_tokens",
                              "ideal_decoded_tokens",
                              "prefill_ts",
                              "decode_ts"};
  for (const char* key : keys) out[key] = nullptr;
  if (!result.ideal) return;
  const LoadIdeal& ideal = *result.ideal;
  const LoadRates rates = rates_of(*ideal.rows);
  out["ideal_s"] = number(ideal.seconds);
  out["fraction_of_ideal"] = number(result.fraction_of_ideal());
  out["ideal_at_batches_s"] = number(ideal.seconds_of_batches);
  out["fraction_at_batches"] = number(result.fraction_at_its_batches());
  out["bound_s"] = number(ideal.bound_seconds);
  out["fraction_of_bound"] = number(result.fraction_of_bound());
  out["ideal_batch"] = ideal.batch;
  out["ideal_prompt_tokens"] = ideal.work.computed_tokens;
  out["ideal_decoded_tokens"] = ideal.work.decoded_tokens;
  out["prefill_ts"] = number(rates.prefill);
  out["decode_ts"] = number(rates.decode_rate(static_cast<double>(ideal.batch)));
}

void add_engine(OrderedJson& out, const LoadSummary& summary) {
  out["steps"] = summary.num_steps;
  out["failed_steps"] = summary.num_failed_steps;
  out["tokens_per_step_mean"] = summary.tokens_per_step;
  out["tokens_per_step_max"] = summary.most_per_step;
  add_mean(out, "running", summary.running);
  add_mean(out, "waiting", summary.waiting);
  out["scheduling_us"] = summary.scheduling_us;
  out["forward_ms"] = summary.forward_ms;
  out["sampling_ms"] = summary.sampling_ms;
  add_mean(out, "kv_usage", summary.kv_usage);
  add_mean(out, "slot_utilisation", summary.slot_utilisation);
  out["prefix_hit_rate"] = summary.prefix_hit_rate;
  out["preemptions"] = summary.rungs[static_cast<size_t>(MemoryRung::preempt)];
  OrderedJson rungs = OrderedJson::object();
  for (size_t i = 0; i < kNumMemoryRungs; ++i) {
    rungs[std::string(memory_rung_name(static_cast<MemoryRung>(i)))] = summary.rungs[i];
  }
  out["memory_rungs"] = rungs;
  out["generator_share"] = summary.reading_share;
}

}  // namespace

OrderedJson load_figures(const LoadEntry& entry) {
  const LoadResult& result = entry.result;
  OrderedJson out;
  add_plan(out, result);
  add_throughput(out, result);
  add_ideal(out, result);
  add_engine(out, result.summary);
  add_setting(out, *entry.setting);
  out["steady"] = result.unsteady.empty();
  out["notes"] = result.unsteady;
  out["workload"] = fmt::format("{:016x}", result.fingerprint);
  out["answers"] = fmt::format("{:016x}", result.summary.answers_hash);
  add_setting_details(out, *entry.setting);
  return out;
}

void add_load_plots(OrderedJson& row, const LoadEntry& entry) {
  const LoadResult& result = entry.result;
  OrderedJson percents = OrderedJson::object();
  for (const auto& [name, member] : distributions()) {
    percents[name] = (result.summary.*member).percents;
  }
  row["percentiles_ms"] = percents;
  OrderedJson series = OrderedJson::array();
  for (const LoadBucket& bucket : result.summary.series) {
    series.push_back({{"s", bucket.seconds},
                      {"running", bucket.running},
                      {"waiting", bucket.waiting},
                      {"output_ts", bucket.output_rate},
                      {"prompt_ts", bucket.prompt_rate},
                      {"kv_usage", bucket.kv_usage},
                      {"slot_utilisation", bucket.slot_utilisation}});
  }
  row["series"] = series;
  OrderedJson rates = OrderedJson::array();
  if (result.ideal) {
    for (const BenchRow& test : *result.ideal->rows) {
      rates.push_back({{"test", bench_test_name(test.test)},
                       {"median_ts", test.rate.median},
                       {"bound_ts", test.bound},
                       {"fraction_of_bound", test.fraction_of_bound()},
                       {"steady", test.unsteady.empty()}});
    }
  }
  row["rates"] = rates;
}

void add_load_requests(OrderedJson& row, const LoadEntry& entry) {
  OrderedJson requests = OrderedJson::array();
  for (const LoadRecord& request : entry.result.requests) {
    OrderedJson made = {{"conversation", request.conversation},
                        {"turn", request.turn},
                        {"arrival_s", 1e-9 * static_cast<double>(request.due_ns)},
                        {"prompt_tokens", request.prompt_tokens},
                        {"wanted_tokens", request.wanted_tokens},
                        {"output_tokens", request.token_ns.size()},
                        {"e2e_ms", request.e2e_ms()}};
    if (request.is_ok()) {
      made["cached_tokens"] = request.stats.cached_tokens;
      made["queue_ms"] = request.queue_ms();
      made["ttft_ms"] = request.ttft_ms();
      if (request.token_ns.size() > 1) made["tpot_ms"] = request.tpot_ms();
      made["preemptions"] = request.stats.num_preemptions;
    } else {
      made["error"] = error_code_name(*request.error);
    }
    requests.push_back(std::move(made));
  }
  row["request_list"] = requests;
}

}  // namespace headrace::cli
