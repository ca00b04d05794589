// See simulation.h.
#include "engine/simulation/simulation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_impl.h"
#include "engine/simulation/checksum_runner.h"
#include "engine/simulation/outcomes.h"
#include "engine/simulation/simulated_sessions.h"
#include "engine/simulation/workload.h"

namespace headrace {
namespace {

using Fault = SimulationFault;

constexpr int64_t kMs = 1'000'000;

class VirtualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  int64_t unix_seconds() const override { return now_ns_ / 1'000'000'000; }
  void advance(int64_t ns) { now_ns_ += ns; }

 private:
  int64_t now_ns_ = 1;
};

class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : random_(seed) {}
  uint64_t next_u64() override { return random_(); }

 private:
  std::mt19937_64 random_;
};

class World {
 public:
  explicit World(const SimulationOptions& options)
      : options_(options), chance_(options.seed, options.choices) {
    EngineOptions engine;
    engine.context = 60 + below(100);
    engine.block_tokens = below(2) == 0 ? 4 : 16;
    engine.max_sequences = 1 + below(below(4) == 0 ? 40 : 8);
    engine.chunk_tokens = engine.max_sequences + below(60);
    engine.kv_tokens = engine.context / 2 + below(5 * engine.context);
    engine.prefix_cache = below(8) != 0;
    engine.kv_events = true;
    engine.max_waiting = 4 + below(below(3) == 0 ? 20 : 200);
    engine.max_waiting_tokens = below(3) == 0 ? 200 + below(2000) : 0;
    reads_late_ = below(4) == 0;
    if (reads_late_) engine.max_unread_bytes = 1 + below(below(2) == 0 ? 1000 : 10000);
    engine.max_wait_ms = below(4) == 0 ? below(50) : 0;
    engine.aging_ms = 20 + below(500);
    engine.max_slowdown = below(2) == 0 ? 2.0 : 0;
    std::vector<CacheGeometry> geometries{{.block_tokens = engine.block_tokens, .window = 0}};
    for (int64_t i = below(3); i > 0; --i) {
      geometries.push_back({.block_tokens = engine.block_tokens, .window = 2 + below(40)});
    }
    const auto num_blocks = engine_blocks(engine, geometries);
    ModelInfo info;
    info.name = "checksum";
    info.vocab_size = kSimulatedVocab;
    info.end_tokens = {kSimulatedEnd};
    auto runner = std::make_unique<ChecksumRunner>(info, geometries, num_blocks);
    runner_ = runner.get();
    runner_->fail_on(kPoison);
    runner_->spoil_logits_of(kSpoiled);
    clock_ = std::make_shared<VirtualClock>();
    runner_->on_step([this](int64_t num_rows) {
      clock_->advance(kMs + num_rows * kMs / 20);
      if (below(8) == 0) cancel_some();  // while the model runs
    });
    EngineParts parts;
    parts.runner = std::move(runner);
    parts.clock = clock_;
    parts.random = std::make_shared<SeededRandom>(options.seed + 1);
    engine_ = std::make_unique<EngineImpl>(std::move(parts), engine, geometries, num_blocks);
    const std::string& folder = options.session_folder;
    const bool has_sessions = engine.prefix_cache && !folder.empty();
    sessions_ = std::make_unique<SimulatedSessions>(
        *engine_, has_sessions ? folder + "/" + std::to_string(options.seed) + "_" : "",
        options_.fail_allocation);
    max_rows_ = engine.chunk_tokens;
    workload_.emplace(chance_, engine_->max_context(), options.with_faults);
    outcomes_.emplace(engine_->max_context(), static_cast<bool>(options.fail_allocation));
  }

  void run() {
    int64_t num_submitted = 0;
    int64_t next_arrival_ns = 0;
    int64_t num_idle_steps = 0;
    while (num_submitted < options_.num_requests || !open_.empty()) {
      while (num_submitted < options_.num_requests && next_arrival_ns <= clock_->now_ns()) {
        submit(num_submitted++);
        // In bursts, with pauses that let the engine become idle.
        next_arrival_ns += below(2) != 0 ? 0 : below(below(10) == 0 ? 200 : 12) * kMs;
      }
      cancel_some();
      if (sessions_->are_on() && below(100) == 0) use_session();
      step();
      num_idle_steps = read_events() ? 0 : num_idle_steps + 1;
      if (num_idle_steps > 5000) throw Fault("5000 steps in which nothing was told to anybody");
      result_.num_steps = runner_->num_steps();
    }
    if (options_.fail_allocation) options_.fail_allocation(-1);
    engine_->step(false);
    for (const KvEvent& event : engine_->take_kv_events()) follow(event);
    check_end();
  }

  SimulationResult& result() { return result_; }

 private:
  int64_t below(int64_t n) { return chance_.below(n); }

  void submit(int64_t number) {
    OpenRequest open;
    open.request = workload_->next_request();
    open.arrived_ns = clock_->now_ns();
    if (below(10) == 0) open.cancel_ns = clock_->now_ns() + below(60) * kMs;
    open.choices.resize(static_cast<size_t>(open.request.num_choices));
    auto stream = engine_->submit(open.request);
    if (!stream.ok()) {
      const ErrorCode code = stream.error().code;
      const auto longest = static_cast<int64_t>(open.request.prompt.size()) +
                           std::max<int64_t>(open.request.stop.max_tokens, 1);
      const bool is_long =
          code == ErrorCode::context_length_exceeded && longest > engine_->max_context();
      if (!is_long && code != ErrorCode::overloaded) {
        throw Fault("refused without reason: " + stream.error().to_string());
      }
      ++result_.num_refused;
      return;
    }
    open.stream = std::move(*stream);
    open_.emplace(number, std::move(open));
  }

  void use_session() {
    const auto which = static_cast<size_t>(below(SimulatedSessions::kNumFiles));
    const int64_t fails_at = options_.fail_allocation && below(2) == 0 ? below(60) : -1;
    if (below(3) != 0) {
      if (below(4) == 0) engine_->clear_prefix_cache();
      sessions_->load(which, fails_at);
    } else if (workload_->has_conversations()) {
      sessions_->save(which, workload_->some_conversation(), below(4) == 0 ? "another" : "",
                      fails_at);
    }
    for (const KvEvent& event : engine_->take_kv_events()) follow(event);
  }

  void cancel_some() {
    if (below(400) == 0) engine_->clear_prefix_cache();
    for (auto& [number, open] : open_) {
      if (open.cancel_ns > clock_->now_ns() || open.cancelled_choice != -2) continue;
      open.cancelled_choice =
          below(2) == 0 ? -1 : static_cast<int32_t>(below(open.request.num_choices));
      if (open.cancelled_choice < 0 && below(2) == 0) {
        open.stream->cancel();
      } else if (open.cancelled_choice < 0) {
        open.stream.reset();  // who is gone does not say so
        open.has_ended = true;
      } else {
        open.stream->cancel(open.cancelled_choice);
      }
    }
  }

  void step() {
    if (options_.with_faults && below(120) == 0) {
      runner_->fail_next_step();
    }
    if (options_.fail_allocation && below(30) == 0) options_.fail_allocation(below(60));
    const int64_t rows = runner_->num_rows();
    engine_->step(false);
    if (options_.fail_allocation) options_.fail_allocation(-1);
    outcomes_->note_failed_alone(runner_->num_failed_alone());
    if (runner_->most_rows() > max_rows_) throw Fault("a step with more rows than allowed");
    if (runner_->num_rows() == rows) clock_->advance(kMs);
    if (below(8) == 0) engine_->scheduler().check_invariants();
    for (const KvEvent& event : engine_->take_kv_events()) follow(event);
  }

  // A mirror of what can be found, as a router would keep it.
  void follow(const KvEvent& event) {
    const auto key = std::pair(event.group, event.hash);
    switch (event.kind) {
      case KvEvent::Kind::stored:
        if (!known_.insert(key).second) throw Fault("a prefix was stored twice");
        break;
      case KvEvent::Kind::removed:
        if (known_.erase(key) == 0 && !has_lost_events_) {
          throw Fault("a prefix was removed that was not stored");
        }
        break;
      case KvEvent::Kind::cleared:
        known_.clear();
        has_lost_events_ = static_cast<bool>(options_.fail_allocation);
        break;
    }
  }

  /// Whether there were any.
  bool read_events() {
    bool any = false;
    for (auto it = open_.begin(); it != open_.end();) {
      OpenRequest& open = it->second;
      if (reads_late_ && below(20) == 0) open.rests_until_ns = clock_->now_ns() + below(100) * kMs;
      const bool rests = open.rests_until_ns > clock_->now_ns();
      while (!rests && !open.has_ended && open.stream->wait_for(std::chrono::milliseconds(0))) {
        const auto event = open.stream->next();
        any = true;
        if (!event) {
          open.has_ended = true;
          check_outcome(open);
          break;
        }
        open.read(*event);
      }
      it = open.has_ended ? open_.erase(it) : std::next(it);
    }
    return any;
  }

  void check_outcome(const OpenRequest& open) {
    outcomes_->check(open, clock_->now_ns());
    if (open.error) return;
    std::vector<TokenId> tokens = open.request.prompt;
    const auto& said = open.choices.front().tokens;
    tokens.insert(tokens.end(), said.begin(), said.end());
    workload_->remember(std::move(tokens));
  }

  void check_end() {
    const Scheduler& scheduler = engine_->scheduler();
    scheduler.check_invariants();
    if (!scheduler.is_idle()) throw Fault("not idle, though all streams have ended");
    int64_t num_known = 0;
    for (const CacheGroup& group : scheduler.cache().groups()) {
      if (group.pool().num_unreferenced() != group.pool().num_blocks()) {
        throw Fault("blocks are still held");
      }
      for (int32_t block = 0; block < group.pool().num_blocks(); ++block) {
        const PrefixIndex& index = group.prefixes();
        num_known += index.contains(block) && !index.is_part(block) ? 1 : 0;
      }
    }
    if (num_known != static_cast<int64_t>(known_.size()) && !has_lost_events_) {
      throw Fault("the events of the prefix cache do not add up to what is in it");
    }
    const OutcomeCounts& counts = outcomes_->counts();
    result_.num_finished = counts.num_finished;
    result_.num_cancelled = counts.num_cancelled;
    result_.num_expired = counts.num_expired;
    result_.num_failed = counts.num_failed;
    result_.num_sessions = sessions_->num_loaded();
    result_.stats = engine_->stats();
    if (result_.stats.waiting_tokens != 0) throw Fault("places in the queue are still taken");
  }

  const SimulationOptions& options_;
  SimulatedChance chance_;
  std::shared_ptr<VirtualClock> clock_;
  ChecksumRunner* runner_ = nullptr;
  std::unique_ptr<EngineImpl> engine_;
  std::unique_ptr<SimulatedSessions> sessions_;
  int64_t max_rows_ = 0;
  bool reads_late_ = false;  // so that requests pause
  std::optional<Workload> workload_;
  std::optional<Outcomes> outcomes_;
  std::map<int64_t, OpenRequest> open_;
  std::set<std::pair<int32_t, KvEvent::Hash>> known_;
  bool has_lost_events_ = false;  // what is known is no mirror any more
  SimulationResult result_;
};

}  // namespace

SimulationResult simulate(const SimulationOptions& options) {
  World world(options);
  try {
    world.run();
  } catch (const std::exception& fault) {
    if (options.fail_allocation) options.fail_allocation(-1);
    world.result().fault = fault.what();
  }
  return world.result();
}

}  // namespace headrace
