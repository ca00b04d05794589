// The persistent thread pool that kernels run on. Owns its threads. Must not know what they
// compute.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/spin_budget.h"

namespace headrace {

/// Threads that wait by a bounded spin and then sleep. One caller at a time; the caller works too.
/// Results must not depend on which worker runs a task: a task is a fixed share of the output.
class ThreadPool {
 public:
  /// `num_threads` counts the caller; 1 starts no thread. Values below 1 are taken as 1. Throws
  /// std::system_error where the system starts no more threads; those started have ended then.
  /// `pin`: each thread stays on a processor of its own, the caller on the first (from its first
  /// call on, and for the rest of its life), as far as the system allows that.
  explicit ThreadPool(int num_threads, bool pin = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }

  /// Calls task(i, worker) once for each i in [0, num_tasks), in any order, and returns when all
  /// are done. `worker` is in [0, num_threads). Each worker begins with a share of consecutive
  /// tasks, the same for the same num_tasks; who is done early takes over tasks of others. The
  /// first exception of a task is rethrown here, after all tasks ended. A call from inside a task
  /// runs its tasks in place.
  void parallel_for(int64_t num_tasks, FunctionRef<void(int64_t, int)> task);

 private:
  void stop();
  void worker_loop(int worker);
  void pin_caller();
  void work(int worker);
  void run_share(int share, int worker);
  int64_t first_of_share(int share) const {
    const int64_t n = num_threads();
    return num_tasks_ / n * share + num_tasks_ % n * share / n;
  }
  void wait_for_workers();

  /// The next task of a worker's share, on a cache line of its own.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
  };

  std::vector<std::thread> threads_;
  bool pin_;
  std::thread::id pinned_caller_;  ///< the last caller that was pinned
  SpinBudget caller_spin_;

  // The current job; written by the caller before `epoch_` moves.
  FunctionRef<void(int64_t, int)>* task_ = nullptr;
  int64_t num_tasks_ = 0;
  std::unique_ptr<Share[]> shares_;  ///< [num_threads]
  std::atomic<int> num_running_{0};
  std::atomic<uint64_t> epoch_{0};
  std::atomic<bool> stop_{false};

  // Sleeping and waking.
  std::mutex mutex_;
  std::condition_variable wake_workers_;
  std::condition_variable wake_caller_;
  std::atomic<int> num_sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};

  std::mutex error_mutex_;
  std::exception_ptr first_error_;
};

}  // namespace headrace
