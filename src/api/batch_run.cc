// See batch_run.h.
#include "api/batch_run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "api/protocol.h"

namespace headrace::api {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{100};
constexpr std::chrono::milliseconds kRetryAfter{50};
constexpr int64_t kSyncAfterNs = 2'000'000'000;

/// What became of one line.
struct LineOutcome {
  std::string text;  ///< to write
  bool has_failed = false;
  std::optional<Error> fault;  ///< of the server
  Usage usage;
};

bool is_fault(const Error& error) {
  switch (error.code) {
    case ErrorCode::internal:
    case ErrorCode::io_error:
    case ErrorCode::corrupt_data:
    case ErrorCode::mismatch:
    case ErrorCode::resource_exhausted:
      return true;
    default:
      return false;
  }
}

/// For who does not outlive `value`.
template <class T>
std::shared_ptr<const T> unowned(const T& value) {
  return {std::shared_ptr<const T>(), &value};
}

class Run {
 public:
  Run(BatchReader& reader, AppendFile& out, const ServedModel& model,
      const BatchRunOptions& options, const BatchRunHooks& hooks, const Clock& clock)
      : reader_(reader),
        out_(out),
        model_(model),
        options_(options),
        hooks_(hooks),
        clock_(clock),
        max_ahead_(std::min<int64_t>(kMaxBatchLinesAhead, int64_t{8} * options.num_workers)) {}

  BatchOutcome run() {
    start();
    wait();
    for (std::thread& thread : threads_) thread.join();
    if (auto synced = out_.sync(); !synced.ok()) stop_by(std::move(synced).error());
    counts_.num_skipped = reader_.num_skipped();
    counts_.input_bytes = std::max(counts_.input_bytes, reader_.skipped_bytes());
    counts_.skipped_bytes = reader_.skipped_bytes();
    return {.counts = counts_,
            .was_interrupted = hooks_.is_interrupted(),
            .error = std::move(error_),
            .first_fault = std::move(first_fault_)};
  }

 private:
  struct Taken {
    int64_t order = 0;
    BatchLine line;
  };

  void start() {
    num_working_ = 0;
    for (int i = 0; i < options_.num_workers; ++i) {
      try {
        const std::lock_guard lock(mutex_);
        threads_.emplace_back([this] { work(); });
        ++num_working_;
      } catch (const std::system_error&) {
        // Fewer will do.
        if (threads_.empty()) {
          stop_by({ErrorCode::resource_exhausted, "cannot start a thread", "", "try again later"});
        }
        break;
      }
    }
  }

  void wait() {
    std::unique_lock lock(mutex_);
    while (num_working_ > 0) {
      changed_.wait_for(lock, kProgressEvery, [&] { return num_working_ == 0; });
      const BatchCounts now = counts_;
      lock.unlock();
      hooks_.progress(now);
      lock.lock();
    }
  }

  bool is_stopping() const { return is_stopped_.load() || hooks_.is_interrupted(); }

  void stop_by(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    is_stopped_ = true;
    changed_.notify_all();
  }

  void work() {
    try {
      while (auto taken = take()) {
        auto outcome = outcome_of(taken->line);
        if (!outcome) break;
        put(taken->order, std::move(*outcome));
      }
    } catch (const std::exception& fault) {
      stop_by({ErrorCode::internal, fault.what(), "", ""});
    }
    const std::lock_guard lock(mutex_);
    --num_working_;
    changed_.notify_all();
  }

  /// The next line; nothing at the end, or where the run ends.
  std::optional<Taken> take() {
    const std::lock_guard reading(reader_mutex_);
    if (is_at_end_ || !wait_for_room()) return std::nullopt;
    auto line = reader_.next();
    if (!line.ok()) {
      if (line.error().code != ErrorCode::cancelled) stop_by(std::move(line).error());
      return std::nullopt;
    }
    if (!*line) {
      is_at_end_ = true;
      return std::nullopt;
    }
    {
      const std::lock_guard lock(mutex_);
      counts_.num_skipped = reader_.num_skipped();
      counts_.skipped_bytes = reader_.skipped_bytes();
      bytes_of_[num_taken_] = reader_.bytes();
    }
    return Taken{num_taken_++, std::move(**line)};
  }

  /// Until the oldest line in work is not too far behind; false where the run ends.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    while (!is_stopping()) {
      const int64_t oldest = bytes_of_.empty() ? num_taken_ : bytes_of_.begin()->first;
      if (num_taken_ - oldest < max_ahead_) return true;
      changed_.wait_for(lock, kProgressEvery);
    }
    return false;
  }

  /// Nothing where the run ends before it is known.
  std::optional<LineOutcome> outcome_of(const BatchLine& line) {
    std::optional<Error> error = line.error;
    LineOutcome out;
    if (!error) {
      try {
        auto body = body_of(line, out.usage);
        if (body.ok()) {
          out.text = batch_success(line, *body);
          return out;
        }
        error = std::move(body).error();
      } catch (const std::bad_alloc&) {
        error = Error{ErrorCode::resource_exhausted, "there was not enough memory", "", ""};
      } catch (const std::exception& fault) {
        error =
            Error{ErrorCode::internal, std::string("the answer failed: ") + fault.what(), "", ""};
      }
    }
    if (error->code == ErrorCode::cancelled && is_stopping()) return std::nullopt;
    out.has_failed = true;
    if (is_fault(*error)) out.fault = error;
    out.text = batch_failure(line, api_error(*error));
    return out;
  }

  Result<std::string> body_of(const BatchLine& line, Usage& usage) {
    HEADRACE_ASSIGN(PreparedRequest request, prepare(*line.protocol, *line.body, model_, clock_));
    request.warnings.insert(request.warnings.end(), line.warnings.begin(), line.warnings.end());
    for (;;) {
      auto answer = hooks_.answer(request, [this] { return is_stopping(); });
      if (answer.ok()) {
        usage = answer->usage();
        const ResponseHead head{std::string(line.protocol->id_prefix) + hex_of(line.key),
                                clock_.unix_seconds()};
        return line.protocol
            ->make_format(head, unowned(request), answering_model(request, unowned(model_)))
            ->whole(*answer);
      }
      if (answer.error().code != ErrorCode::overloaded) return std::move(answer).error();
      if (is_stopping()) return Error{ErrorCode::cancelled, "interrupted", "", ""};
      std::this_thread::sleep_for(kRetryAfter);
    }
  }

  void put(int64_t order, LineOutcome outcome) {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    note_fault(outcome);
    finished_.emplace(order, std::move(outcome));
    while (!finished_.empty()) {
      const auto first = finished_.begin();
      if (options_.in_input_order && first->first != bytes_of_.begin()->first) break;
      auto written = out_.append(first->second.text);
      if (!written.ok()) {
        error_ = std::move(written).error();
        is_stopped_ = true;
        break;
      }
      count(first->first, first->second);
      finished_.erase(first);
    }
    sync_sometimes();
    changed_.notify_all();
  }

  void note_fault(const LineOutcome& outcome) {
    if (!outcome.fault) {
      faults_in_a_row_ = 0;
      return;
    }
    if (!first_fault_) first_fault_ = outcome.fault;
    if (++faults_in_a_row_ < kMaxFaultsInARow) return;
    error_ = outcome.fault;
    is_stopped_ = true;
  }

  void count(int64_t order, const LineOutcome& outcome) {
    ++counts_.num_answered;
    counts_.num_failed += outcome.has_failed ? 1 : 0;
    counts_.prompt_tokens += outcome.usage.prompt_tokens;
    counts_.cached_tokens += outcome.usage.cached_tokens;
    counts_.completion_tokens += outcome.usage.completion_tokens;
    const auto bytes = bytes_of_.find(order);
    counts_.input_bytes = std::max(counts_.input_bytes, bytes->second);
    bytes_of_.erase(bytes);
  }

  /// A power cut costs no more than a little.
  void sync_sometimes() {
    const int64_t now_ns = clock_.now_ns();
    if (now_ns - synced_ns_ < kSyncAfterNs) return;
    synced_ns_ = now_ns;
    if (auto synced = out_.sync(); !synced.ok() && !error_) {
      error_ = std::move(synced).error();
      is_stopped_ = true;
    }
  }

  BatchReader& reader_;
  AppendFile& out_;
  const ServedModel& model_;
  const BatchRunOptions options_;
  const BatchRunHooks& hooks_;
  const Clock& clock_;
  const int64_t max_ahead_;
  std::vector<std::thread> threads_;
  std::atomic<bool> is_stopped_{false};

  std::mutex reader_mutex_;  // guards reader_, is_at_end_ and num_taken_
  bool is_at_end_ = false;
  int64_t num_taken_ = 0;

  std::mutex mutex_;  // guards all below, and out_; locked within reader_mutex_
  std::condition_variable changed_;
  int num_working_ = 0;
  std::map<int64_t, uint64_t> bytes_of_;     // lines in work: where they end in the input
  std::map<int64_t, LineOutcome> finished_;  // not written yet
  BatchCounts counts_;
  std::optional<Error> error_;
  std::optional<Error> first_fault_;
  int faults_in_a_row_ = 0;
  int64_t synced_ns_ = 0;
};

}  // namespace

BatchOutcome run_batch(BatchReader& reader, AppendFile& out, const ServedModel& model,
                       const BatchRunOptions& options, const BatchRunHooks& hooks,
                       const Clock& clock) {
  return Run(reader, out, model, options, hooks, clock).run();
}

}  // namespace headrace::api
