// See exchange_state.h.
#include "server/http/exchange_state.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/os/free_memory.h"
#include "base/os/threads.h"

namespace headrace::server {
namespace {

/// A request or a reply beyond this leaves memory behind that is worth giving back.
constexpr size_t kLargeBytes = size_t{1} << 20;

/// Of a pool's thread, which always gets the same name.
void call_this_thread(const char* name) {
  thread_local bool is_named = false;
  if (!std::exchange(is_named, true)) name_this_thread(name);
}

/// Lets the state know when the last handler has let go of it.
class HeldExchange final : public Exchange {
 public:
  explicit HeldExchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}
  ~HeldExchange() override { state_->let_go(); }
  HeldExchange(const HeldExchange&) = delete;
  HeldExchange& operator=(const HeldExchange&) = delete;

  const HttpRequest& request() const override { return state_->request(); }
  std::string take_body() override { return state_->take_body(); }
  void reply(HttpReply reply) override { state_->reply(std::move(reply)); }
  void begin(StreamHead head) override { state_->begin(std::move(head)); }
  void write(std::string bytes) override { state_->write(std::move(bytes)); }
  void end() override { state_->end(); }
  void abort() override { state_->abort(); }
  size_t unsent_bytes() const override { return state_->unsent_bytes(); }
  bool is_over() const override { return state_->is_over(); }
  void on_over(std::function<void(ExchangeEnd)> then) override { state_->on_over(std::move(then)); }
  void post(std::function<void()> work) override { state_->post(std::move(work)); }
  void post_long(std::function<void()> work) override { state_->post_long(std::move(work)); }
  void post_after(std::chrono::milliseconds time, std::function<void()> work) override {
    state_->post_after(time, std::move(work));
  }

 private:
  std::shared_ptr<ExchangeState> state_;
};

}  // namespace

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<ExchangeState> state) {
  return std::make_shared<HeldExchange>(std::move(state));
}

ExchangeState::ExchangeState(
    HttpRequest request, std::shared_ptr<Workers> workers, std::function<void()> wake,
    std::function<std::string(const HttpRequest&, int, const std::string&)> error_body,
    std::shared_ptr<void> body_charge)
    : request_(std::move(request)),
      workers_(std::move(workers)),
      strand_(workers_->answers.get_executor()),
      wake_(std::move(wake)),
      error_body_(std::move(error_body)),
      is_large_(request_.body.size() > kLargeBytes),
      body_charge_(std::move(body_charge)) {}

std::string ExchangeState::take_body() {
  {
    const std::lock_guard lock(mutex_);
    body_charge_.reset();
  }
  return std::exchange(request_.body, {});
}

void ExchangeState::wake_locked(std::unique_lock<std::mutex>& lock) {
  if (std::exchange(is_woken_, true) || over_) return;
  lock.unlock();
  wake_();
}

void ExchangeState::reply(HttpReply reply) {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_answered_, true)) return;
  has_ended_ = true;
  if (reply.body.size() > kLargeBytes) is_large_ = true;
  next_.is_whole = next_.is_last = true;
  next_.head.emplace();
  next_.head->reply = std::move(reply);
  wake_locked(lock);
}

void ExchangeState::begin(StreamHead head) {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_answered_, true)) return;
  is_stream_ = true;
  next_.head = std::move(head);
  wake_locked(lock);
}

void ExchangeState::write(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (!is_stream_ || has_ended_ || over_ || bytes.empty()) return;
  unsent_ += bytes.size();
  if (next_.bytes.empty()) {
    next_.bytes = std::move(bytes);
  } else {
    next_.bytes += bytes;
  }
  wake_locked(lock);
}

void ExchangeState::end() {
  std::unique_lock lock(mutex_);
  if (!is_stream_ || std::exchange(has_ended_, true)) return;
  next_.is_last = true;
  wake_locked(lock);
}

void ExchangeState::abort() {
  std::unique_lock lock(mutex_);
  if (over_) return;
  is_answered_ = has_ended_ = true;
  next_.is_cut = true;
  wake_locked(lock);
}

void ExchangeState::let_go() noexcept {
  bool is_done = false;
  {
    const std::lock_guard lock(mutex_);
    is_done = is_answered_ && (!is_stream_ || has_ended_);
  }
  if (!is_done) run([this] { fail(); });
}

size_t ExchangeState::unsent_bytes() const {
  const std::lock_guard lock(mutex_);
  return unsent_;
}

bool ExchangeState::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_.has_value();
}

void ExchangeState::on_over(std::function<void(ExchangeEnd)> then) {
  std::unique_lock lock(mutex_);
  if (!over_) {
    over_callbacks_.push_back(std::move(then));
    return;
  }
  const ExchangeEnd end = *over_;
  lock.unlock();
  post([then = std::move(then), end] { then(end); });
}

void ExchangeState::fail() {
  HttpReply failed;
  failed.status = 500;
  failed.body = error_body_(request_, 500, "The server failed to answer this request.");
  reply(std::move(failed));
  // Where the answer had begun it cannot be made good.
  bool is_begun = false;
  {
    const std::lock_guard lock(mutex_);
    is_begun = is_stream_ && !has_ended_;
  }
  if (is_begun) abort();
}

void ExchangeState::run(const std::function<void()>& work) noexcept {
  try {
    work();
  } catch (...) {
    try {
      fail();
    } catch (...) {
      // Not even memory for that: the client's own limit of time ends it.
    }
  }
}

void ExchangeState::post(std::function<void()> work) {
  boost::asio::post(strand_, [self = shared_from_this(), work = std::move(work)] {
    call_this_thread("answers");
    self->run(work);
  });
}

void ExchangeState::post_long(std::function<void()> work) {
  boost::asio::post(workers_->long_work, [self = shared_from_this(), work = std::move(work)] {
    call_this_thread("bodies");
    self->run(work);
    if (self->is_large_) give_back_freed_memory();
  });
}

void ExchangeState::post_after(std::chrono::milliseconds time, std::function<void()> work) {
  post([this, time, work = std::move(work)] {
    if (is_over()) return;
    auto timer = std::make_shared<boost::asio::steady_timer>(strand_, time);
    timers_.push_back(timer);
    timer->async_wait([self = weak_from_this(), timer, work](const auto& error) {
      const auto state = self.lock();
      if (!error && state && !state->is_over()) state->run(work);
    });
  });
}

Outgoing ExchangeState::take() {
  const std::lock_guard lock(mutex_);
  is_woken_ = false;
  Outgoing out = std::move(next_);
  next_ = {};
  return out;
}

void ExchangeState::sent(size_t num_bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ -= std::min(unsent_, num_bytes);
}

void ExchangeState::finish(ExchangeEnd end) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  over_ = end;
  is_answered_ = has_ended_ = true;
  unsent_ = 0;
  next_ = {};
  auto callbacks = std::exchange(over_callbacks_, {});
  lock.unlock();
  if (is_large_) boost::asio::post(workers_->long_work, [] { give_back_freed_memory(); });
  // Nothing waits for a time that no longer matters.
  post([this] {
    for (const auto& each : timers_) {
      if (const auto timer = each.lock()) timer->cancel();
    }
    timers_.clear();
  });
  for (auto& each : callbacks) post([then = std::move(each), end] { then(end); });
}

}  // namespace headrace::server
