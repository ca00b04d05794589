// What handlers and the connection's session share of one exchange. Must not know Beast.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/http/exchange.h"

namespace headrace::server {

using WorkStrand = boost::asio::strand<boost::asio::thread_pool::executor_type>;

/// The threads that handlers run on.
struct Workers {
  Workers(int num_threads, int num_long_threads)
      : answers(static_cast<size_t>(num_threads)),
        long_work(static_cast<size_t>(num_long_threads)) {}
  /// Until all that was posted is done.
  void join() {
    long_work.join();
    answers.join();
  }

  boost::asio::thread_pool answers;  ///< for what takes little time, as all on an exchange's strand
  boost::asio::thread_pool long_work;  ///< for bodies: parsing, templates, tokenising
};

/// What is to be sent next.
struct Outgoing {
  std::optional<StreamHead> head;  ///< of a whole reply, with its body, or of a stream
  bool is_whole = false;           ///< the head is all
  std::string bytes;               ///< of a stream
  bool is_last = false;
  bool is_cut = false;
};

class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  /// `wake` is called from any thread when there is more to take; `internal_error` is the body of
  /// the answer where a handler failed.
  ExchangeState(HttpRequest request, std::shared_ptr<Workers> workers, std::function<void()> wake,
                std::function<std::string(const HttpRequest&, int, const std::string&)> error_body,
                std::shared_ptr<void> body_charge = nullptr);

  // For handlers: see Exchange.
  const HttpRequest& request() const { return request_; }
  std::string take_body();
  void reply(HttpReply reply);
  void begin(StreamHead head);
  void write(std::string bytes);
  void end();
  void abort();
  size_t unsent_bytes() const;
  bool is_over() const;
  void on_over(std::function<void(ExchangeEnd)> then);
  void post(std::function<void()> work);
  void post_long(std::function<void()> work);
  void post_after(std::chrono::milliseconds time, std::function<void()> work);
  /// The handlers are gone: whatever they left undone is ended.
  void let_go() noexcept;

  // For the session, on the I/O thread.
  /// What came since the last call; empty where nothing did.
  Outgoing take();
  /// So many bytes of what was taken are with the system now.
  void sent(size_t num_bytes);
  /// Over. Callbacks run on the strand, and are let go.
  void finish(ExchangeEnd end);

 private:
  void run(const std::function<void()>& work) noexcept;
  /// Answers 500, or cuts what had begun.
  void fail();
  void wake_locked(std::unique_lock<std::mutex>& lock);

  HttpRequest request_;
  std::shared_ptr<Workers> workers_;  ///< the strand's, which must not go before it
  WorkStrand strand_;
  std::function<void()> wake_;
  std::function<std::string(const HttpRequest&, int, const std::string&)> error_body_;

  /// Of post_after(); the strand's.
  std::vector<std::weak_ptr<boost::asio::steady_timer>> timers_;

  std::atomic<bool> is_large_;  ///< it, or the reply: afterwards free memory is given back

  mutable std::mutex mutex_;
  std::shared_ptr<void> body_charge_;  ///< let go with the body
  bool is_answered_ = false;           ///< a reply, or the beginning of one
  bool is_stream_ = false;
  bool has_ended_ = false;  ///< by end(), reply() or abort()
  bool is_woken_ = false;   ///< since the last take()
  std::optional<ExchangeEnd> over_;
  Outgoing next_;
  size_t unsent_ = 0;
  std::vector<std::function<void(ExchangeEnd)>> over_callbacks_;
};

/// The Exchange that handlers get.
std::shared_ptr<Exchange> make_exchange(std::shared_ptr<ExchangeState> state);

}  // namespace headrace::server
