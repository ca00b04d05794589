// Runs seeds of the engine's simulation (src/engine/simulation/simulation.h), several at a time.
//
//   simulate [--seeds A..B] [--requests N] [--threads N] [--no-faults] [--memory-faults]
//            [--sessions FOLDER]
//
// Prints what was seen, and every seed at which something was wrong; exits 1 if there was one. With
// --memory-faults allocations fail too, at random moments of steps; with --sessions session files
// are saved to a folder and loaded again while requests run.
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/simulation/simulation.h"
#include "tests/replaced_new.h"

namespace {

/// Allocations of this thread until one fails; below 0: none does.
thread_local int64_t allocations_left = -1;

struct Args {
  uint64_t first = 0;
  uint64_t last = 99;
  int64_t num_requests = 1000;
  unsigned num_threads = 0;
  bool with_faults = true;
  bool with_memory_faults = false;
  std::string session_folder;
};

template <class T>
bool parse(std::string_view text, T& out) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool parse_seeds(std::string_view text, Args& args) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return parse(text, args.first) && parse(text, args.last);
  return parse(text.substr(0, dots), args.first) && parse(text.substr(dots + 2), args.last) &&
         args.first <= args.last;
}

bool parse_args(int argc, char** argv, Args& args) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--no-faults") {
      args.with_faults = false;
    } else if (name == "--memory-faults") {
      args.with_memory_faults = true;
    } else if (name == "--sessions" && !value.empty()) {
      args.session_folder = value;
      ++i;
    } else if (name == "--seeds" && parse_seeds(value, args)) {
      ++i;
    } else if (name == "--requests" && parse(value, args.num_requests)) {
      ++i;
    } else if (name == "--threads" && parse(value, args.num_threads)) {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

class Runs {
 public:
  explicit Runs(const Args& args) : args_(args), next_(args.first) {}

  void work() {
    for (;;) {
      const uint64_t seed = next_.fetch_add(1);
      if (seed > args_.last) return;
      headrace::SimulationOptions options;
      options.seed = seed;
      options.num_requests = args_.num_requests;
      options.with_faults = args_.with_faults;
      options.session_folder = args_.session_folder;
      if (args_.with_memory_faults)
        options.fail_allocation = [](int64_t n) { allocations_left = n; };
      add(seed, headrace::simulate(options));
    }
  }

  bool report() const {
    std::printf(
        "%lld seeds, %lld wrong: %lld steps, %lld choices right to the end, %lld cancelled, "
        "%lld expired, %lld failed, %lld refused\n",
        as_long(num_seeds_), as_long(num_wrong_), as_long(sum_.num_steps),
        as_long(sum_.num_finished), as_long(sum_.num_cancelled), as_long(sum_.num_expired),
        as_long(sum_.num_failed), as_long(sum_.num_refused));
    std::printf("sessions loaded: %lld\n", as_long(sum_.num_sessions));
    std::printf("prompt tokens found in the cache: %lld of %lld\n",
                as_long(sum_.stats.prefix_hit_tokens), as_long(sum_.stats.prefix_query_tokens));
    for (size_t i = 0; i < headrace::kNumMemoryRungs; ++i) {
      const auto name = headrace::memory_rung_name(static_cast<headrace::MemoryRung>(i));
      std::printf("  %-16s %lld\n", std::string(name).c_str(), as_long(sum_.stats.rungs[i]));
    }
    return num_wrong_ == 0;
  }

 private:
  static long long as_long(int64_t number) { return number; }

  void add(uint64_t seed, const headrace::SimulationResult& result) {
    const std::lock_guard lock(mutex_);
    ++num_seeds_;
    if (!result.fault.empty()) {
      ++num_wrong_;
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), result.fault.c_str());
    }
    sum_.num_steps += result.num_steps;
    sum_.num_finished += result.num_finished;
    sum_.num_cancelled += result.num_cancelled;
    sum_.num_expired += result.num_expired;
    sum_.num_failed += result.num_failed;
    sum_.num_refused += result.num_refused;
    sum_.num_sessions += result.num_sessions;
    sum_.stats.prefix_hit_tokens += result.stats.prefix_hit_tokens;
    sum_.stats.prefix_query_tokens += result.stats.prefix_query_tokens;
    for (size_t i = 0; i < headrace::kNumMemoryRungs; ++i) {
      sum_.stats.rungs[i] += result.stats.rungs[i];
    }
  }

  const Args& args_;
  std::atomic<uint64_t> next_;
  std::mutex mutex_;
  int64_t num_seeds_ = 0;
  int64_t num_wrong_ = 0;
  headrace::SimulationResult sum_;
};

}  // namespace

void* allocate_for_test(size_t size, size_t alignment) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  return allocate_plainly(size, alignment);
}

int main(int argc, char** argv) {
  Args args;
  if (!parse_args(argc, argv, args)) {
    std::fprintf(stderr,
                 "usage: simulate [--seeds A..B] [--requests N] [--threads N] [--no-faults] "
                 "[--memory-faults] [--sessions FOLDER]\n");
    return 2;
  }
  if (args.num_threads == 0) args.num_threads = std::max(1U, std::thread::hardware_concurrency());
  Runs runs(args);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < args.num_threads; ++i) threads.emplace_back([&] { runs.work(); });
  runs.work();
  for (auto& thread : threads) thread.join();
  return runs.report() ? 0 : 1;
}
