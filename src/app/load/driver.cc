// See driver.h.
#include "app/load/driver.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>

namespace headrace {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;
/// So long it may sleep before it looks whether to stop.
constexpr int64_t kMaxSleepNs = kNsPerSecond / 10;

/// A conversation under way.
struct Conversation {
  int64_t index = 0;
  std::vector<LoadTurn> turns;
  size_t turn = 0;
  std::vector<TokenId> tokens;  ///< said so far, the prompt of the turn included
  int64_t due_ns = 0;           ///< of the turn
};

/// A request that the engine has.
struct ActiveRequest {
  Conversation conversation;
  Stream stream;
  size_t record;
  std::vector<TokenId> answer;
};

class LoadDriver {
 public:
  LoadDriver(Engine& engine, const LoadWorkload& workload, const LoadPace& pace,
             const LoadDriverHooks& hooks, const Clock& clock)
      : engine_(engine), workload_(workload), pace_(pace), hooks_(hooks), clock_(clock) {}

  Result<LoadRecords> run() {
    seen_ = engine_.wait_for_news(0, std::chrono::nanoseconds(0));
    out_.before = last_ = engine_.stats();
    begin_ns_ = clock_.now_ns();
    int64_t woken_ns = 0;
    for (;;) {
      begin_due(now());
      HEADRACE_TRY(submit_ready());
      if (active_.empty() && ready_.empty() && !may_begin_more(now())) break;
      report(now());
      if (out_.was_stopped) break;
      const int64_t sleep_ns = now();
      reading_ns_ += sleep_ns - woken_ns;
      const uint64_t seen = engine_.wait_for_news(seen_, time_to_sleep(sleep_ns));
      woken_ns = now();
      if (seen == seen_) continue;
      seen_ = seen;
      read_all();
      sample(woken_ns);
    }
    if (out_.was_stopped) drop_active();
    settle();
    out_.after = last_;
    out_.reading_seconds = seconds(reading_ns_);
    return std::move(out_);
  }

 private:
  static double seconds(int64_t ns) { return 1e-9 * static_cast<double>(ns); }
  int64_t now() const { return clock_.now_ns() - begin_ns_; }

  /// Whether a conversation can still begin, if not now.
  bool may_begin_more(int64_t now_ns) const {
    if (pace_.num_requests > 0 && out_.num_conversations >= pace_.num_requests) return false;
    if (pace_.seconds <= 0) return true;
    const int64_t next_ns = pace_.rate > 0 ? next_due_ns_ : now_ns;
    return seconds(next_ns) < pace_.seconds;
  }

  void begin_due(int64_t now_ns) {
    while (may_begin_more(now_ns)) {
      if (pace_.rate > 0) {
        if (next_due_ns_ > now_ns) return;
        begin_conversation(next_due_ns_);
        const double gap = workload_.gap(out_.num_conversations) / pace_.rate;
        next_due_ns_ += static_cast<int64_t>(gap * static_cast<double>(kNsPerSecond));
      } else {
        if (static_cast<int64_t>(active_.size() + ready_.size()) >= pace_.concurrency) return;
        begin_conversation(now_ns);
      }
    }
  }

  void begin_conversation(int64_t due_ns) {
    Conversation made;
    made.index = pace_.first + out_.num_conversations++;
    made.turns = workload_.conversation(made.index);
    out_.fingerprint ^= mix64(load_fingerprint(made.turns) ^ static_cast<uint64_t>(made.index));
    made.tokens = made.turns.front().tokens;
    made.due_ns = due_ns;
    ready_.push_back(std::move(made));
  }

  Result<void> submit_ready() {
    size_t count = ready_.size();
    if (pace_.static_batch > 0) {
      count = active_.empty() ? std::min(count, static_cast<size_t>(pace_.static_batch)) : 0;
    }
    int64_t least_tokens = 0;
    for (size_t i = 0; i < count && pace_.pads; ++i) {
      least_tokens = std::max(least_tokens, ready_[i].turns[ready_[i].turn].num_output);
    }
    for (; count > 0; --count) {
      Conversation next = std::move(ready_.front());
      ready_.pop_front();
      HEADRACE_TRY(submit(std::move(next), least_tokens));
    }
    return {};
  }

  /// `least_tokens`: to be computed, also where fewer are wanted.
  Result<void> submit(Conversation conversation, int64_t least_tokens) {
    const LoadTurn& turn = conversation.turns[conversation.turn];
    Request request;
    request.prompt = conversation.tokens;
    request.sampling.temperature = static_cast<float>(pace_.temperature);
    request.sampling.seed =
        workload_.sampling_seed(conversation.index, static_cast<int64_t>(conversation.turn));
    request.stop.max_tokens = std::max(turn.num_output, least_tokens);
    request.stop.ignore_eos = true;
    LoadRecord record;
    record.conversation = conversation.index;
    record.turn = static_cast<int64_t>(conversation.turn);
    record.prompt_tokens = static_cast<int64_t>(conversation.tokens.size());
    record.wanted_tokens = turn.num_output;
    record.due_ns = conversation.due_ns;
    record.submitted_ns = now();
    record.token_ns.reserve(static_cast<size_t>(turn.num_output));
    auto stream = engine_.submit(std::move(request));
    if (!stream.ok()) {
      if (stream.error().code != ErrorCode::overloaded) return std::move(stream).error();
      record.end_ns = now();
      record.error = stream.error().code;
      out_.requests.push_back(std::move(record));
      ++num_done_;
      return {};
    }
    active_.push_back(
        {std::move(conversation), std::move(stream).value(), out_.requests.size(), {}});
    out_.requests.push_back(std::move(record));
    return {};
  }

  void read_all() {
    num_new_first_ = 0;
    for (size_t i = 0; i < active_.size();) {
      if (!read(active_[i])) {
        ++i;
        continue;
      }
      ActiveRequest ended = std::move(active_[i]);
      if (i + 1 < active_.size()) active_[i] = std::move(active_.back());
      active_.pop_back();
      go_on(std::move(ended));
    }
  }

  /// What a stream has to tell; whether it has ended.
  bool read(ActiveRequest& request) {
    LoadRecord& record = out_.requests[request.record];
    while (request.stream.wait_for(std::chrono::milliseconds(0))) {
      const auto event = request.stream.next();
      const int64_t now_ns = now();
      if (!event) {
        record.end_ns = now_ns;
        return true;
      }
      if (const auto* token = std::get_if<TokenEvent>(&*event)) {
        if (std::ssize(record.token_ns) == record.wanted_tokens) continue;  // padding
        if (record.token_ns.empty()) ++num_new_first_;
        record.token_ns.push_back(now_ns);
        request.answer.push_back(token->id);
      } else if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
        record.stats = finish->stats;
        if (finish->reason == FinishReason::cancelled) record.error = ErrorCode::cancelled;
      } else if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
        record.error = error->error.code;
      }
    }
    return false;
  }

  /// The next turn of the conversation whose request has ended, if there is one.
  void go_on(ActiveRequest ended) {
    LoadRecord& record = out_.requests[ended.record];
    const auto num_tokens = static_cast<int64_t>(record.token_ns.size());
    if (record.is_ok() && num_tokens != record.wanted_tokens) record.error = ErrorCode::internal;
    record.answer_hash =
        hash_tokens(static_cast<uint64_t>(record.conversation * 4096 + record.turn), ended.answer);
    Conversation& conversation = ended.conversation;
    const bool is_late = pace_.seconds > 0 && seconds(record.end_ns) >= pace_.seconds;
    if (!record.is_ok() || ++conversation.turn >= conversation.turns.size() || is_late) {
      ++num_done_;
      return;
    }
    const auto& more = conversation.turns[conversation.turn].tokens;
    auto& tokens = conversation.tokens;
    tokens.insert(tokens.end(), ended.answer.begin(), ended.answer.end());
    tokens.insert(tokens.end(), more.begin(), more.end());
    conversation.due_ns = record.end_ns;
    ready_.push_back(std::move(conversation));
  }

  void sample(int64_t now_ns) {
    EngineStats stats = engine_.stats();
    LoadSample made;
    made.ns = now_ns;
    made.num_running = stats.num_running;
    made.num_waiting = stats.num_waiting;
    made.num_held_back = static_cast<int64_t>(ready_.size());
    made.num_steps = stats.num_steps - last_.num_steps;
    made.num_rows = stats.step_rows - last_.step_rows;
    // Not those that were read: they may be of a step that is not counted yet.
    made.num_tokens = stats.generated_tokens - last_.generated_tokens;
    made.num_first = num_new_first_;
    made.kv_usage = stats.kv_usage();
    made.slot_utilisation = stats.token_slot_utilisation();
    out_.samples.push_back(made);
    last_ = std::move(stats);
  }

  /// Cancels what the engine has, as if it had never been asked for it.
  void drop_active() {
    std::vector<size_t> cut;
    for (const ActiveRequest& request : active_) cut.push_back(request.record);
    active_.clear();
    std::sort(cut.rbegin(), cut.rend());
    for (const size_t record : cut) {
      out_.requests.erase(out_.requests.begin() + static_cast<std::ptrdiff_t>(record));
    }
  }

  /// The last answers may be read before the engine has counted their step.
  void settle() {
    while (last_.num_running + last_.num_waiting > 0) {
      seen_ = engine_.wait_for_news(seen_, std::chrono::nanoseconds(kMaxSleepNs));
      num_new_first_ = 0;
      sample(now());
    }
  }

  std::chrono::nanoseconds time_to_sleep(int64_t now_ns) const {
    int64_t ns = kMaxSleepNs;
    if (pace_.rate > 0 && may_begin_more(now_ns)) {
      ns = std::clamp<int64_t>(next_due_ns_ - now_ns, 0, kMaxSleepNs);
    }
    return std::chrono::nanoseconds(ns);
  }

  void report(int64_t now_ns) {
    if (now_ns < next_report_ns_) return;
    next_report_ns_ = now_ns + kMaxSleepNs;
    hooks_.on_progress(
        {num_done_, last_.generated_tokens - out_.before.generated_tokens, seconds(now_ns)});
    out_.was_stopped = hooks_.should_stop();
  }

  Engine& engine_;
  const LoadWorkload& workload_;
  const LoadPace& pace_;
  const LoadDriverHooks& hooks_;
  const Clock& clock_;
  int64_t begin_ns_ = 0;
  int64_t next_due_ns_ = 0;
  int64_t next_report_ns_ = 0;
  int64_t reading_ns_ = 0;
  uint64_t seen_ = 0;
  std::deque<Conversation> ready_;     ///< arrived, not yet given to the engine
  std::vector<ActiveRequest> active_;  ///< that the engine has, in no order
  int64_t num_new_first_ = 0;          ///< of the last reading: first tokens of requests
  int64_t num_done_ = 0;
  EngineStats last_;
  LoadRecords out_;
};

}  // namespace

Result<LoadRecords> drive_load(Engine& engine, const LoadWorkload& workload, const LoadPace& pace,
                               const LoadDriverHooks& hooks, const Clock& clock) {
  return LoadDriver(engine, workload, pace, hooks, clock).run();
}

}  // namespace headrace
