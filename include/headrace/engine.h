// The engine's door: submit a request, read its events, cancel it. Part of the public C++ API.
// Nothing else of the engine is used by server, command line or Python.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/kv_event.h"
#include "headrace/model.h"
#include "headrace/request.h"
#include "headrace/result.h"

namespace headrace {

/// The events of one request, in order; the last is an ErrorEvent or the FinishEvent of its last
/// choice. Thread-safe. Dropping a Stream before its end cancels the request. Where much is left
/// unread the request pauses, and goes on once that has been read: others are not slowed down by
/// it.
class Stream {
 public:
  class Impl;
  explicit Stream(std::shared_ptr<Impl> impl);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for the next event; nothing once the last one was read.
  std::optional<Event> next();
  /// Waits until `next` has something to tell at once, at most `time`; whether it has.
  bool wait_for(std::chrono::milliseconds time);
  /// Asks the engine to stop at the end of its current step. A FinishEvent (cancelled) of each
  /// choice that had not ended follows.
  void cancel();
  /// The same for one choice alone.
  void cancel(int32_t choice);

 private:
  std::shared_ptr<Impl> impl_;
};

/// What a session file holds.
struct LoadedSession {
  std::vector<TokenId> tokens;  ///< whose keys and values are in the prefix cache now
  std::string note;             ///< as it was given to save_session
};

/// One model, many requests. Owns the thread that runs the steps.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Queues a request. Errors: a bad parameter, an empty prompt, a prompt (plus max_tokens) past
  /// the context or past all of the KV cache (context_length_exceeded, with both numbers), a full
  /// queue (overloaded).
  virtual Result<Stream> submit(Request request) = 0;

  /// As of the end of the last step. From any thread.
  virtual EngineStats stats() const = 0;
  /// How long the step under way has not finished a layer; 0 where none is under way: idle, between
  /// two steps, or another engine's turn. Of a step that is only long it is the time of one layer.
  /// From any thread; waits for nothing.
  virtual std::chrono::nanoseconds stalled_for() const = 0;
  /// A picture of the KV blocks: for each cache group, in the order of EngineStats::groups, the
  /// states of its blocks in block order, run after run: 'f' free, 'c' cached (a prefix that nobody
  /// uses), 'h' held by requests; "f120h3c16". At most a quarter of a second old while it is asked
  /// for at least every five seconds and steps end in time. The first call may return an older
  /// one; `patience` is how long it may wait for a new one, which comes when the step under way
  /// ends. Empty where there is no memory. From any thread.
  virtual std::vector<std::string> kv_map(std::chrono::nanoseconds patience) = 0;
  /// Waits until the engine has done something since it was `seen`, a step in the main, at most
  /// `time`; returns what to call seen now (0: nothing yet). What it told meanwhile is in the
  /// streams, so that one thread can read many: it waits here, then asks each
  /// Stream::wait_for(0ms).
  virtual uint64_t wait_for_news(uint64_t seen, std::chrono::nanoseconds time) = 0;
  /// The events since the last call, if the engine was made to keep them. Of so many that are not
  /// taken (65 536) all are dropped, and a KvEvent::Kind::cleared comes in their place. From any
  /// thread.
  virtual std::vector<KvEvent> take_kv_events() = 0;
  /// Forgets all prefixes that no request uses, before the next step.
  virtual void clear_prefix_cache() = 0;

  // Sessions: keys and values that outlive the engine. Both wait until the engine is between two
  // steps, and requests wait while blocks are copied. From any thread.
  /// Writes to a file what the prefix cache holds of `tokens` from the first on, in this scope;
  /// returns how many that is. A request's tokens are there once it has ended: all but the last,
  /// which was not computed. `note` goes along, any bytes up to 16 MiB. The file appears under its
  /// name only when it is whole; it replaces a session file and nothing else, and only its owner
  /// may read it. Errors: invalid_argument (something else is there, a note that is too long),
  /// io_error, resource_exhausted (a full disk, memory), unsupported (no prefix cache), cancelled
  /// (the engine is being stopped).
  virtual Result<int64_t> save_session(std::span<const TokenId> tokens,
                                       const std::string& cache_scope, const std::string& path,
                                       std::string_view note) = 0;
  /// Puts the keys and values of a file into the prefix cache, where a request of this scope whose
  /// prompt begins with these tokens finds them: with the same results as if they were computed.
  /// All or nothing: the whole file is checked first. Errors: not_found, io_error, corrupt_data (no
  /// session file, cut, damaged), mismatch (another model, tokenizer, KV type, block size or
  /// instruction set), unsupported (of a newer version; no prefix cache), resource_exhausted (KV
  /// blocks, memory), cancelled (the engine is being stopped).
  virtual Result<LoadedSession> load_session(const std::string& path,
                                             const std::string& cache_scope) = 0;

  /// Tokens that one sequence may hold, prompt and completion together.
  virtual int64_t max_context() const = 0;
  virtual const ModelInfo& model() const = 0;
};

}  // namespace headrace
