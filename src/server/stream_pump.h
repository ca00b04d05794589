// Reads the streams of many requests with one thread, and gives what comes to who waits for it.
// Must not know HTTP or JSON.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "headrace/engine.h"

namespace headrace::server {

/// Who waits for the events of some streams.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Whether it has room for more; while it has none its streams are left unread, and their
  /// requests pause. Called on the pump's thread; must not wait.
  virtual bool wants_more() const = 0;
  /// The next events of its stream number `stream`; not none. Called on the pump's thread.
  virtual void take(size_t stream, std::vector<Event> events) = 0;
  /// The stream gives nothing more, whether or not all of it came. Called once, and last.
  virtual void stream_ended(size_t stream) noexcept = 0;
};

/// For the streams of one engine.
class StreamPump {
 public:
  /// `engine` must outlive it.
  explicit StreamPump(Engine& engine);
  ~StreamPump();
  StreamPump(const StreamPump&) = delete;
  StreamPump& operator=(const StreamPump&) = delete;

  /// Gives the stream's events to `sink` until it has ended, or the sink is gone. From any thread.
  void add(std::shared_ptr<Stream> stream, std::weak_ptr<EventSink> sink, size_t number);
  /// Lets go of all streams, which cancels their requests, and of all to come; their sinks are told
  /// that they ended.
  void end();

 private:
  struct Entry {
    std::shared_ptr<Stream> stream;
    std::weak_ptr<EventSink> sink;
    size_t number = 0;
  };

  void run();
  /// Whether the entry is done with.
  static bool serve(Entry& entry);
  /// The same where there is no memory for what comes.
  static bool serve_or_drop(Entry& entry) noexcept;
  static void let_go(Entry& entry) noexcept;

  Engine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Entry> added_;
  bool is_ending_ = false;
  std::vector<Entry> entries_;  ///< the thread's own
  std::thread thread_;
};

}  // namespace headrace::server
