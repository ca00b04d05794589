// The engine: its step, its thread, and how one is made for a model. Must not know text, JSON or
// sockets.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/kv_view.h"
#include "base/clock.h"
#include "base/function_ref.h"
#include "base/random.h"
#include "engine/engine_options.h"
#include "engine/inbox.h"
#include "engine/kv_map.h"
#include "engine/runner.h"
#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/waiting_room.h"
#include "engine/session/session_file.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace {

class Model;

/// The options with what they leave to the model filled in. Errors: out_of_range (an option).
Result<EngineOptions> completed_options(EngineOptions options, const ModelInfo& model);

/// Blocks of each cache group for these options. `geometries` as of cache_geometries().
std::vector<int64_t> engine_blocks(const EngineOptions& options,
                                   std::span<const CacheGeometry> geometries);

/// Their bytes, were EngineOptions::kv_tokens so many. `block_bytes`: of one block of each group.
uint64_t engine_kv_bytes(EngineOptions options, int64_t kv_tokens,
                         std::span<const CacheGeometry> geometries,
                         std::span<const uint64_t> block_bytes);

/// The largest EngineOptions::kv_tokens, at most that of `options`, for which the blocks take no
/// more than `options.kv_bytes`.
int64_t tokens_that_fit(const EngineOptions& options, std::span<const CacheGeometry> geometries,
                        std::span<const uint64_t> block_bytes);

/// The most tokens of one sequence for which there are blocks when it runs alone.
int64_t kv_capacity(std::span<const CacheGeometry> geometries, std::span<const int64_t> num_blocks,
                    int64_t chunk_tokens);

/// Starts an engine. `model` must outlive it, and nothing else may use the model's backend.
/// Errors: out_of_range (an option), resource_exhausted (memory for KV or activations,
/// a thread).
Result<std::unique_ptr<Engine>> make_engine(Model& model, const EngineOptions& options);

/// What the outside world is to an engine.
struct EngineParts {
  std::unique_ptr<ModelRunner> runner;
  std::shared_ptr<const Clock> clock;    ///< read from any thread
  std::shared_ptr<RandomSource> random;  ///< fresh seeds
};

class EngineImpl final : public Engine {
 public:
  /// `options` are complete and valid; `num_blocks`: one number a geometry. `block_bytes` are for
  /// the statistics.
  EngineImpl(EngineParts parts, const EngineOptions& options,
             std::span<const CacheGeometry> geometries, std::span<const int64_t> num_blocks,
             std::vector<uint64_t> block_bytes = {});
  /// Cancels what still runs.
  ~EngineImpl() override;

  Result<Stream> submit(Request request) override;
  EngineStats stats() const override;
  std::chrono::nanoseconds stalled_for() const override {
    return std::chrono::nanoseconds(
        std::as_const(*parts_.runner).heartbeat().silent_ns(parts_.clock->now_ns()));
  }
  std::vector<std::string> kv_map(std::chrono::nanoseconds patience) override;
  uint64_t wait_for_news(uint64_t seen, std::chrono::nanoseconds time) override;
  std::vector<KvEvent> take_kv_events() override;
  void clear_prefix_cache() override { inbox_->forget_prefixes(); }
  Result<int64_t> save_session(std::span<const TokenId> tokens, const std::string& cache_scope,
                               const std::string& path, std::string_view note) override;
  Result<LoadedSession> load_session(const std::string& path,
                                     const std::string& cache_scope) override;
  int64_t max_context() const override { return std::min(options_.context, capacity_); }
  const ModelInfo& model() const override { return parts_.runner->info(); }

  /// Runs steps on a thread of its own from now on.
  void start();
  /// One step by hand, where start() was not called. With `wait`, blocks while there is no work.
  /// Returns false once the engine is to stop.
  bool step(bool wait);

  const Scheduler& scheduler() const { return scheduler_; }

 private:
  // engine_sessions.cc
  void run_between_steps(FunctionRef<void()> work);
  SessionOrigin origin() const;
  Result<void> check_sessions_work() const;
  Result<int64_t> save_prefix(std::span<const TokenId> tokens, const std::string& cache_scope,
                              const std::string& path, std::string_view note);
  Result<void> write_prefix(const FoundPrefix& found, const SessionHeader& header,
                            SessionWriter& writer) const;
  Result<LoadedSession> load_prefix(const std::string& path, const std::string& cache_scope);
  Error no_room_for(size_t num_tokens) const;

  // engine_impl.cc
  Result<int64_t> check(const Request& request) const;
  Result<int64_t> check_length(const Request& request) const;
  Result<void> check_kind(const Request& request) const;
  Result<void> check_logprobs(std::string_view name, int64_t value) const;
  Stream enqueue(Request request, int64_t max_tokens);
  bool run_step_in_turn();
  void run_step();
  // None throws: they run on the engine's thread, where nobody would catch it.
  void fail_step(ErrorCode code, std::string_view what, std::string_view detail) noexcept;
  void fail_step(const Error& error, bool may_repeat) noexcept;
  void drop(Stream::Impl& stream) noexcept;
  void emit() noexcept;
  void publish() noexcept;
  void update_published() noexcept;
  void check_when_idle() noexcept;
  void check_books() noexcept;

  EngineParts parts_;
  const EngineOptions options_;
  const int64_t capacity_;
  std::shared_ptr<Inbox> inbox_;
  WaitingRoom room_;
  Scheduler scheduler_;
  std::vector<uint64_t> block_bytes_;  // by group
  KvMap kv_map_;
  bool was_busy_ = false;
  std::atomic<uint64_t> next_id_{0};
  std::mutex random_mutex_;  // guards parts_.random
  mutable std::mutex published_mutex_;
  std::condition_variable news_;
  uint64_t num_published_ = 0;  // guarded by it
  EngineStats published_;       // guarded by it
  DecodeWindow recent_decode_;  // guarded by it
  std::thread thread_;
};

}  // namespace headrace
