// See limits.h. Each thread takes the time of short windows of work, again and again while all
// threads run, and of each window a short one counts: what other programs take away now and then
// does not.
#include "backend/cpu/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/large_pages.h"
#include "base/os/system_limits.h"

namespace headrace {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kPeakSeconds = 0.03;

/// Which of a window's times counts: the shortest of computing; of reading one that a quarter of
/// the passes reach, since a window that once was in a cache by luck does not make memory fast.
constexpr double kPeakQuantile = 0;
constexpr double kReadQuantile = 0.25;

/// A line of the kernel's loop: KernelTable::read_memory takes multiples of this.
constexpr size_t kReadGrain = 256;

/// Reads of a window, and how much of it one timing covers at least.
constexpr size_t kWindowBytes = 1 << 20;
constexpr size_t kTimedBytes = 256 << 10;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// By thread and window: the seconds of each pass; none where a thread never came to it.
using WindowTimes = std::vector<std::vector<std::vector<double>>>;

/// Runs work(thread, window) on all threads at once for `seconds`, at least twice each on the first
/// to end.
WindowTimes window_times(CpuContext& context, size_t num_windows, double seconds,
                         FunctionRef<void(int, size_t)> work) {
  const int num_threads = context.pool.num_threads();
  WindowTimes times(static_cast<size_t>(num_threads),
                    std::vector<std::vector<double>>(num_windows));
  std::atomic<int> num_ready{0};
  std::atomic<bool> has_ended{false};
  context.pool.parallel_for(num_threads, [&](int64_t task, int) {
    const int thread = static_cast<int>(task);
    auto& mine = times[static_cast<size_t>(task)];
    num_ready.fetch_add(1);
    while (num_ready.load() < num_threads) std::this_thread::yield();
    const auto begin = SteadyClock::now();
    for (int pass = 0; !has_ended.load() && (pass < 2 || seconds_since(begin) < seconds); ++pass) {
      for (size_t window = 0; window < num_windows && !has_ended.load(); ++window) {
        const auto window_begin = SteadyClock::now();
        work(thread, window);
        const double taken = seconds_since(window_begin);
        // A thread that runs on alone has more of the memory and of the clock than its share.
        if (!has_ended.load()) mine[window].push_back(taken);
      }
    }
    has_ended.store(true);
  });
  return times;
}

/// Of threads that share processors each shows the speed of a whole one.
double share_of_processors(int num_threads) {
  return std::min(1.0, static_cast<double>(usable_processors()) / num_threads);
}

/// Units of work a second on all threads; `units` in each window.
double total_rate(WindowTimes times, double units, double quantile) {
  double rate = 0;
  for (auto& windows : times) {
    double seconds = 0;
    double done = 0;
    for (auto& passes : windows) {
      if (passes.empty()) continue;
      const auto at = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(passes.size()));
      std::nth_element(passes.begin(), passes.begin() + at, passes.end());
      seconds += passes[static_cast<size_t>(at)];
      done += units;
    }
    if (seconds > 0) rate += done / seconds;
  }
  return rate * share_of_processors(static_cast<int>(times.size()));
}

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};

}  // namespace

double measure_cpu_peak(CpuContext& context) {
  constexpr int64_t kRounds = 10000;  // some tens of microseconds
  std::vector<std::vector<float>> sinks(static_cast<size_t>(context.pool.num_threads()),
                                        std::vector<float>(16));
  const double macs = static_cast<double>(context.kernels.peak(kRounds, sinks[0].data()));
  auto times = window_times(context, 1, kPeakSeconds, [&](int thread, size_t) {
    std::vector<float>& sink = sinks[static_cast<size_t>(thread)];
    std::fill(sink.begin(), sink.end(), 0.0F);
    context.kernels.peak(kRounds, sink.data());
  });
  return total_rate(std::move(times), macs, kPeakQuantile);
}

double measure_cpu_read_rate(CpuContext& context, size_t bytes, double seconds) {
  const auto num_threads = static_cast<size_t>(context.pool.num_threads());
  const size_t share = std::max(bytes / num_threads / kReadGrain, size_t{1}) * kReadGrain;
  const size_t num_windows = std::max(share / kWindowBytes, size_t{1});
  const size_t window_bytes = share / num_windows / kReadGrain * kReadGrain;
  const size_t size = share * num_threads;
  constexpr size_t kAlignment = 2 << 20;
  const size_t padded = (size + kAlignment - 1) / kAlignment * kAlignment;
  const std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, padded)));
  if (!memory) throw std::bad_alloc();
  advise_large_pages(memory.get(), padded);
  // Untouched pages would all be the one page of zeros.
  context.pool.parallel_for(static_cast<int64_t>(num_threads), [&](int64_t thread, int) {
    std::fill_n(memory.get() + static_cast<size_t>(thread) * share, share, std::byte{1});
  });

  const size_t repetitions = std::max(kTimedBytes / window_bytes, size_t{1});
  std::atomic<uint64_t> sink{0};
  // With and without the hint: which one is faster differs from machine to machine.
  const auto read_with = [&](int64_t prefetch_bytes) {
    auto times = window_times(context, num_windows, seconds / 2, [&](int thread, size_t window) {
      const std::byte* const data =
          memory.get() + static_cast<size_t>(thread) * share + window * window_bytes;
      uint64_t seen = 0;
      for (size_t i = 0; i < repetitions; ++i) {
        seen +=
            context.kernels.read_memory(data, static_cast<int64_t>(window_bytes), prefetch_bytes);
      }
      sink.fetch_add(seen, std::memory_order_relaxed);
    });
    return total_rate(std::move(times), static_cast<double>(window_bytes * repetitions),
                      kReadQuantile);
  };
  return std::max(read_with(0), read_with(1024));
}

}  // namespace headrace
