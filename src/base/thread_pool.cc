// See thread_pool.h. The order of seq_cst operations on `epoch_`/`num_sleepers_` (and on
// `num_running_`/`caller_sleeps_`) is what makes a lost wake-up impossible: each side first says
// what it did, then looks at what the other said.
#include "base/thread_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/os/pin_thread.h"
#include "base/os/threads.h"

namespace headrace {
namespace {

thread_local bool inside_task = false;
thread_local int current_worker = 0;

}  // namespace

ThreadPool::ThreadPool(int num_threads, bool pin) : pin_(pin) {
  const int num_workers = std::max(num_threads, 1) - 1;
  threads_.reserve(static_cast<size_t>(num_workers));
  shares_ = std::make_unique<Share[]>(static_cast<size_t>(num_workers) + 1);
  try {
    for (int i = 0; i < num_workers; ++i) {
      threads_.emplace_back([this, i] {
        name_this_thread("compute");
        worker_loop(i + 1);
      });
    }
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true);
    epoch_.fetch_add(1);
  }
  wake_workers_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::parallel_for(int64_t num_tasks, FunctionRef<void(int64_t, int)> task) {
  if (num_tasks <= 0) return;
  if (pin_) pin_caller();
  if (threads_.empty() || num_tasks == 1 || inside_task) {
    const bool outer = inside_task;
    inside_task = true;
    std::exception_ptr error;
    for (int64_t i = 0; i < num_tasks; ++i) {
      try {
        task(i, outer ? current_worker : 0);
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    inside_task = outer;
    if (error) std::rethrow_exception(error);
    return;
  }
  task_ = &task;
  num_tasks_ = num_tasks;
  first_error_ = nullptr;
  for (int share = 0; share < num_threads(); ++share) {
    shares_[static_cast<size_t>(share)].next.store(first_of_share(share),
                                                   std::memory_order_relaxed);
  }
  num_running_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1);
  if (num_sleepers_.load() > 0) {
    std::lock_guard lock(mutex_);
    wake_workers_.notify_all();
  }
  work(0);
  wait_for_workers();
  task_ = nullptr;
  if (first_error_) std::rethrow_exception(std::exchange(first_error_, nullptr));
}

void ThreadPool::pin_caller() {
  if (inside_task || pinned_caller_ == std::this_thread::get_id()) return;
  pinned_caller_ = std::this_thread::get_id();
  pin_this_thread(0);
}

void ThreadPool::work(int worker) {
  inside_task = true;
  current_worker = worker;
  for (int i = 0; i < num_threads(); ++i) run_share((worker + i) % num_threads(), worker);
  inside_task = false;
}

void ThreadPool::run_share(int share, int worker) {
  std::atomic<int64_t>& next = shares_[static_cast<size_t>(share)].next;
  const int64_t end = first_of_share(share + 1);
  // Looking first: a share that is done costs no write to a line that others read.
  while (next.load(std::memory_order_relaxed) < end) {
    const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
    if (i >= end) break;
    try {
      (*task_)(i, worker);
    } catch (...) {
      std::lock_guard lock(error_mutex_);
      if (!first_error_) first_error_ = std::current_exception();
    }
  }
}

void ThreadPool::wait_for_workers() {
  if (caller_spin_.spin([this] { return num_running_.load(std::memory_order_acquire) == 0; }))
    return;
  std::unique_lock lock(mutex_);
  caller_sleeps_.store(true);
  wake_caller_.wait(lock, [this] { return num_running_.load() == 0; });
  caller_sleeps_.store(false);
}

void ThreadPool::worker_loop(int worker) {
  uint64_t seen = 0;
  SpinBudget budget;
  if (pin_) pin_this_thread(worker);
  for (;;) {
    if (!budget.spin([&] { return epoch_.load(std::memory_order_acquire) != seen; })) {
      std::unique_lock lock(mutex_);
      num_sleepers_.fetch_add(1);
      wake_workers_.wait(lock, [&] { return epoch_.load() != seen; });
      num_sleepers_.fetch_sub(1);
    }
    ++seen;
    if (stop_.load()) return;
    work(worker);
    if (num_running_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
      std::lock_guard lock(mutex_);
      wake_caller_.notify_one();
    }
  }
}

}  // namespace headrace
