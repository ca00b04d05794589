// See load.h.
#include "app/load/load.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <new>
#include <utility>

#include "base/checked.h"
#include "base/clock.h"
#include "base/os/machine_load.h"
#include "base/os/system_limits.h"
#include "base/saturating.h"
#include "engine/engine_impl.h"
#include "engine/kv_memory.h"
#include "model/cache_groups.h"

namespace headrace {
namespace {

std::string number(double value) {
  char out[32];
  return {out, std::to_chars(out, out + sizeof(out), value, std::chars_format::fixed).ptr};
}

EngineOptions engine_options(const LoadPlan& plan, int64_t block_tokens) {
  EngineOptions options;
  options.max_sequences = plan.max_sequences;
  options.kv_bytes = plan.kv_bytes;
  if (plan.kv_bytes == 0) {
    const int64_t longest = ceil_div(plan.spec.longest(), block_tokens) * block_tokens;
    options.kv_tokens = std::max(plan.max_sequences * longest, 2 * block_tokens);
  }
  options.prefix_cache = plan.prefix_cache;
  options.max_waiting = std::max(options.max_waiting, plan.pace.concurrency);
  options.max_waiting_tokens = std::numeric_limits<int64_t>::max();  // the load itself is the bound
  options.max_wait_ms = plan.max_wait_ms;
  options.max_slowdown = plan.max_slowdown;
  return options;
}

/// Of the engine's cache.
uint64_t pool_bytes(const LoadPlan& plan, const MemoryNeeds& needs) {
  if (plan.kv_bytes > 0) return plan.kv_bytes;
  EngineOptions options = engine_options(plan, needs.block_tokens);
  options.context = options.kv_tokens;
  options.chunk_tokens = std::max(needs.chunk_tokens, plan.max_sequences);
  const CacheGroups groups = group_layers(needs.caches);
  std::vector<CacheGeometry> geometries;
  for (const auto& group : groups.groups) {
    geometries.push_back({.block_tokens = needs.block_tokens, .window = group.spec.window});
  }
  const auto num_blocks = engine_blocks(options, geometries);
  uint64_t bytes = 0;
  for (size_t i = 0; i < num_blocks.size(); ++i) {
    const auto& group = groups.groups[i];
    const KvPageLayout page{.type = needs.kv_type,
                            .num_kv_heads = group.spec.num_kv_heads,
                            .head_dim = group.spec.head_dim,
                            .block_tokens = needs.block_tokens};
    const uint64_t block =
        saturating_mul(uint64_t{page.page_bytes()}, static_cast<uint64_t>(group.num_layers));
    bytes = saturating_add(bytes, saturating_mul(block, static_cast<uint64_t>(num_blocks[i])));
  }
  return bytes;
}

std::string mib(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

std::string what_may_come(const LoadSpec& spec) {
  return (spec.num_turns > 1 ? "a conversation of " : "a request of ") +
         std::to_string(spec.longest()) + " tokens may come";
}

Result<void> check_fits(const LoadPlan& plan, const ModelConfig& config, MemoryNeeds needs,
                        uint64_t available_bytes) {
  const LoadSpec& spec = plan.spec;
  if (spec.longest() > config.context_length) {
    return Error{ErrorCode::context_length_exceeded,
                 what_may_come(spec) + ", the model was made for a context of " +
                     std::to_string(config.context_length),
                 "", "use smaller --input-len, --output-len or --prefix-len, or fewer --turns"};
  }
  needs.logit_rows = plan.max_sequences;
  needs.chunk_tokens = std::max(needs.chunk_tokens, plan.max_sequences);
  const uint64_t weights = resident_bytes(needs);
  const uint64_t activations = activation_bytes(needs);
  const uint64_t pool = pool_bytes(plan, needs);
  const uint64_t total = saturating_add(saturating_add(weights, activations), pool);
  const uint64_t budget = budget_bytes(available_bytes);
  if (total <= budget) return {};
  return Error{ErrorCode::resource_exhausted,
               load_name(plan) + " needs weights " + mib(weights) + " + KV cache " + mib(pool) +
                   " + activations " + mib(activations) + " = " + mib(total) + ", and may use " +
                   mib(budget),
               "", "use a smaller -np or --kv-memory, or shorter requests"};
}

/// Ordinary tokens that the model has a row for.
std::vector<TokenId> ordinary_tokens(const OpenedModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  const int64_t count = std::min(tokenizer.vocab_size(), model.model->info().vocab_size);
  std::vector<TokenId> all;
  std::vector<TokenId> ordinary;
  for (TokenId id = 0; id < count; ++id) {
    all.push_back(id);
    if (tokenizer.kind(id) == TokenKind::normal) ordinary.push_back(id);
  }
  return ordinary.empty() ? all : ordinary;
}

Error interrupted() {
  return {ErrorCode::cancelled, "interrupted", "", ""};
}

class Load {
 public:
  Load(OpenedModel& model, const LoadPlan& plan, const BenchHooks& hooks)
      : model_(model), plan_(plan), hooks_(hooks), workload_(plan.spec, ordinary_tokens(model)) {}

  Result<LoadResult> run(std::shared_ptr<const std::vector<BenchRow>> rates) {
    HEADRACE_TRY(start());
    HEADRACE_TRY(warm_up());
    LoadPace pace = plan_.pace;
    if (plan_.batching != LoadBatching::continuous) pace.static_batch = plan_.max_sequences;
    pace.pads = plan_.batching == LoadBatching::padded;
    MeasuredStretch stretch;
    stretch.num_threads = model_.backend->num_threads();
    stretch.num_processors = usable_processors();
    stretch.before = machine_load();
    HEADRACE_ASSIGN(LoadRecords records, drive(pace, false));
    stretch.after = machine_load();
    if (records.was_stopped && records.requests.empty()) return interrupted();
    LoadResult result;
    result.plan = plan_;
    result.summary = summarize_load(records, plan_.slo);
    stretch.seconds = result.summary.seconds;
    result.processor_seconds = stretch.after.own_seconds - stretch.before.own_seconds;
    result.unsteady = unsteady_reasons(summarize({1}), stretch);
    if (rates && std::any_of(rates->begin(), rates->end(),
                             [](const BenchRow& row) { return !row.unsteady.empty(); })) {
      result.unsteady.emplace_back("rates that it is compared with were disturbed");
    }
    result.was_interrupted = records.was_stopped;
    if (records.was_stopped) {
      result.unsteady.emplace_back("interrupted: what was under way then is in no figure");
    }
    result.fingerprint = records.fingerprint;
    result.num_conversations = records.num_conversations;
    set_pool(result);
    if (rates) result.ideal = ideal_of(records, std::move(rates));
    result.requests = std::move(records.requests);
    return result;
  }

 private:
  Result<void> start() {
    auto started = model_.start_engine(engine_options(plan_, block_tokens()));
    if (!started.ok()) {
      if (started.error().where == "kv_bytes") started.error().where = "--kv-memory";
      return std::move(started).error();
    }
    engine_ = std::move(started).value();
    const int64_t longest = plan_.spec.longest();
    if (longest <= engine_->max_context()) return {};
    return Error{ErrorCode::context_length_exceeded,
                 what_may_come(plan_.spec) + ", the KV cache holds " +
                     std::to_string(engine_->max_context()),
                 "", "give more with --kv-memory"};
  }

  int64_t block_tokens() const { return model_.options.block_tokens; }

  Result<void> warm_up() {
    if (plan_.num_warm_up == 0) return {};
    LoadPace pace;
    pace.concurrency = std::min(plan_.num_warm_up, plan_.max_sequences);
    pace.num_requests = plan_.num_warm_up;
    pace.temperature = plan_.pace.temperature;
    pace.first = LoadWorkload::kWarmUp;
    const auto done = drive(pace, true);
    if (!done.ok()) return done.error();
    if (done->was_stopped) return interrupted();
    engine_->clear_prefix_cache();
    return {};
  }

  Result<LoadRecords> drive(const LoadPace& pace, bool is_warm_up) {
    const std::string name = load_name(plan_);
    const LoadDriverHooks hooks = {
        [&](const LoadProgress& now) {
          std::string stage = is_warm_up ? "warming up, " : "";
          stage += std::to_string(now.num_done);
          if (pace.num_requests > 0) stage += " of " + std::to_string(pace.num_requests);
          stage += " done, " + std::to_string(now.num_tokens) + " tokens in " +
                   std::to_string(static_cast<int64_t>(now.seconds)) + " s";
          hooks_.on_progress({name, std::move(stage)});
        },
        hooks_.should_stop};
    return drive_load(*engine_, workload_, pace, hooks, clock_);
  }

  void set_pool(LoadResult& result) const {
    for (const KvGroupStats& group : engine_->stats().groups) {
      result.kv_tokens = std::max(result.kv_tokens, group.num_blocks * group.block_tokens);
      result.kv_bytes += static_cast<uint64_t>(group.num_blocks) * group.block_bytes;
    }
  }

  LoadIdeal ideal_of(const LoadRecords& records,
                     std::shared_ptr<const std::vector<BenchRow>> rows) const {
    const LoadRates rates = rates_of(*rows);
    LoadIdeal ideal;
    ideal.rows = std::move(rows);
    ideal.work = work_of(records.requests);
    ideal.batch = plan_.max_batch();
    ideal.seconds = ideal_seconds(ideal.work, rates, ideal.batch);
    ideal.bound_seconds = ideal_seconds(ideal.work, bounds_of(*ideal.rows), ideal.batch);
    ideal.seconds_of_batches = ideal_seconds_of_steps(ideal.work, rates, records.samples);
    return ideal;
  }

  OpenedModel& model_;
  const LoadPlan& plan_;
  const BenchHooks& hooks_;
  const LoadWorkload workload_;
  const SystemClock clock_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

int64_t LoadPlan::max_batch() const {
  int64_t most = max_sequences;
  if (pace.rate <= 0) most = std::min(most, pace.concurrency);
  if (pace.num_requests > 0) most = std::min(most, pace.num_requests);
  return std::max<int64_t>(most, 1);
}

std::string load_batching_name(LoadBatching batching) {
  switch (batching) {
    case LoadBatching::continuous:
      return "continuous";
    case LoadBatching::static_batch:
      return "static";
    case LoadBatching::padded:
      return "padded";
  }
  return "";
}

std::string load_name(const LoadPlan& plan) {
  return (plan.pace.rate > 0 ? "rate " + number(plan.pace.rate)
                             : "concurrency " + std::to_string(plan.pace.concurrency)) +
         (plan.batching == LoadBatching::continuous ? "" : " " + load_batching_name(plan.batching));
}

Result<void> check_load_fits(const std::vector<LoadPlan>& plans, const ModelConfig& config,
                             const MemoryNeeds& needs, uint64_t available_bytes) {
  for (const LoadPlan& plan : plans) {
    HEADRACE_TRY(check_fits(plan, config, needs, available_bytes));
  }
  return {};
}

Result<LoadResult> run_load(OpenedModel& model, const LoadPlan& plan,
                            std::shared_ptr<const std::vector<BenchRow>> rates,
                            const BenchHooks& hooks) {
  try {
    return Load(model, plan, hooks).run(std::move(rates));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory while measuring", "",
                 "use a smaller -np, or fewer and shorter requests"};
  }
}

}  // namespace headrace
