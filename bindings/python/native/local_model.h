// A model with its engine, for many threads at once: requests run together, sessions (which need
// the backend for themselves) one at a time between them. Must not know Python.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "app/open_model.h"
#include "bindings/python/native/run.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace::python {

class LocalModel {
 public:
  /// Errors: those of open_model and OpenedModel::start_engine.
  static Result<std::shared_ptr<LocalModel>> open(const std::string& path,
                                                  const OpenOptions& options,
                                                  EngineOptions engine_options);
  ~LocalModel();
  LocalModel(const LocalModel&) = delete;
  LocalModel& operator=(const LocalModel&) = delete;

  /// While one is alive, the model is not freed.
  class Use {
   public:
    explicit Use(LocalModel& model) : model_(&model) {}
    Use(Use&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
    ~Use();

   private:
    LocalModel* model_;
  };
  /// Errors: invalid_argument (closed, or made before a fork and used in its child).
  Result<Use> use();
  /// For who waits for a Run: also while the model closes, which waits for them. (A thread that
  /// came back to an interpreter that has ended would end the process.)
  Use use_for_waiting();

  // For who has a Use.
  const OpenedModel& opened() const { return *opened_; }
  const Engine& engine() const { return *engine_; }
  /// What the model's file wishes, else the documented defaults.
  const SamplingParams& default_sampling() const { return default_sampling_; }
  /// Bytes that a session of so many tokens takes, and so many rows of logits.
  uint64_t session_bytes(int64_t num_tokens, int64_t num_logit_rows) const;

  /// Submits, where no session has the backend or its turn ends within `time`; else nothing, and
  /// `request` is as it was. Errors: those of Engine::submit.
  std::optional<Result<std::shared_ptr<Run>>> try_submit(Request& request,
                                                         const RunOptions& options,
                                                         std::chrono::milliseconds time);
  /// Run::wait_for_end, which meanwhile takes the events of all runs that nobody takes pieces of,
  /// so that none pauses for want of a reader, and looks for the stop strings of all.
  bool wait_for_end(Run& run, std::chrono::milliseconds time);
  /// Nobody reads `run` any more: it is cancelled.
  void drop(const std::shared_ptr<Run>& run);

  /// The turn of the one session that may run: requests that come meanwhile wait for its end.
  class SessionTurn {
   public:
    explicit SessionTurn(LocalModel& model) : model_(model) {}
    ~SessionTurn();
    SessionTurn(const SessionTurn&) = delete;
    SessionTurn& operator=(const SessionTurn&) = delete;
    /// Waits at most `time` for other sessions, and as long for the requests under way; whether
    /// the backend is ours.
    bool wait(std::chrono::milliseconds time);

   private:
    LocalModel& model_;
    bool is_first_ = false;
  };

  /// Whether close() was called: who has a Use shall come to an end.
  bool is_closing() const;
  /// Cancels what runs, waits until nobody uses the model, frees it. Where the calling thread
  /// itself does (a signal handler in the middle of a call), the end of its Use frees it. Again:
  /// nothing.
  void close();
  /// For the child of a fork, where no thread of ours goes on: nothing is used or freed any more.
  void abandon() { is_abandoned_->store(true); }
  bool is_abandoned() const { return is_abandoned_->load(); }

 private:
  LocalModel() = default;
  /// Those whose end has not been seen yet. With the lock.
  std::vector<std::shared_ptr<Run>> unfinished_runs();
  bool read_for_others();
  void end_use();
  /// Frees everything. With the lock, where nobody uses it.
  void free_all();

  std::unique_ptr<OpenedModel> opened_;
  std::unique_ptr<Engine> engine_;  ///< uses opened_
  SamplingParams default_sampling_;

  const std::shared_ptr<std::atomic<bool>> is_abandoned_ =
      std::make_shared<std::atomic<bool>>(false);
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_closing_ = false;
  std::unordered_multiset<std::thread::id> users_;  ///< one entry a Use
  bool session_has_turn_ = false;
  /// Kept to their end, for a session must not begin before it.
  std::unordered_set<std::shared_ptr<Run>> runs_;
  /// Those whose events any thread takes that waits: nobody takes their pieces, or they have stop
  /// strings.
  std::unordered_set<std::shared_ptr<Run>> read_runs_;
};

}  // namespace headrace::python
