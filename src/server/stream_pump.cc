// See stream_pump.h.
#include "server/stream_pump.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/os/threads.h"

namespace headrace::server {
namespace {

/// In which a reader that has caught up is seen, though the engine did nothing meanwhile.
constexpr std::chrono::milliseconds kLookAgain{20};
/// Of one stream at once: a reader gets many small pieces rather than one that is late.
constexpr size_t kMaxEvents = 256;

}  // namespace

StreamPump::StreamPump(Engine& engine) : engine_(engine), thread_([this] { run(); }) {}

StreamPump::~StreamPump() {
  end();
}

void StreamPump::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  const std::lock_guard lock(mutex_);
  for (auto* entries : {&entries_, &added_}) {
    for (Entry& each : *entries) let_go(each);
    entries->clear();
  }
}

void StreamPump::let_go(Entry& entry) noexcept {
  entry.stream.reset();
  if (const auto sink = entry.sink.lock()) sink->stream_ended(entry.number);
}

void StreamPump::add(std::shared_ptr<Stream> stream, std::weak_ptr<EventSink> sink, size_t number) {
  Entry entry{std::move(stream), std::move(sink), number};
  {
    const std::lock_guard lock(mutex_);
    if (!is_ending_) {
      added_.push_back(std::move(entry));
      wake_.notify_all();
      return;
    }
  }
  let_go(entry);
}

bool StreamPump::serve(Entry& entry) {
  const auto sink = entry.sink.lock();
  if (!sink) return true;
  std::vector<Event> events;
  bool has_ended = false;
  while (events.size() < kMaxEvents && sink->wants_more() &&
         entry.stream->wait_for(std::chrono::milliseconds(0))) {
    auto event = entry.stream->next();
    if (!event) {
      has_ended = true;
      break;
    }
    events.emplace_back(std::move(*event));
  }
  if (!events.empty()) sink->take(entry.number, std::move(events));
  if (has_ended) sink->stream_ended(entry.number);
  return has_ended;
}

bool StreamPump::serve_or_drop(Entry& entry) noexcept {
  try {
    return serve(entry);
  } catch (...) {
    let_go(entry);
    return true;
  }
}

void StreamPump::run() {
  name_this_thread("streams");
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (entries_.empty()) wake_.wait(lock, [this] { return is_ending_ || !added_.empty(); });
      if (is_ending_) break;
      entries_.insert(entries_.end(), std::make_move_iterator(added_.begin()),
                      std::make_move_iterator(added_.end()));
      added_.clear();
    }
    const auto rest = std::remove_if(entries_.begin(), entries_.end(), serve_or_drop);
    entries_.erase(rest, entries_.end());
    if (!entries_.empty()) seen = engine_.wait_for_news(seen, kLookAgain);
  }
}

}  // namespace headrace::server
