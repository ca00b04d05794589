// See stream_impl.h and headrace/engine.h.
#include <utility>

#include "engine/inbox.h"
#include "engine/stream_impl.h"

namespace headrace {

Stream::Impl::Impl(std::shared_ptr<Inbox> inbox, uint64_t sequence_id)
    : inbox_(std::move(inbox)), sequence_id_(sequence_id) {}

void Stream::Impl::push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    const bool is_last =
        std::holds_alternative<FinishEvent>(event) || std::holds_alternative<ErrorEvent>(event);
    events_.push_back(std::move(event));
    has_ended_ = is_last;
  }
  arrived_.notify_all();
}

void Stream::Impl::break_off() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = has_broken_off_ = owes_error_ = true;
  }
  arrived_.notify_all();
}

bool Stream::Impl::has_broken_off() const noexcept {
  const std::lock_guard lock(mutex_);
  return has_broken_off_;
}

std::optional<Event> Stream::Impl::next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return !events_.empty() || has_ended_; });
  if (events_.empty() && owes_error_) {
    Event error = ErrorEvent{{ErrorCode::resource_exhausted,
                              "there was not enough memory to go on with this request", "", ""}};
    owes_error_ = false;
    return error;
  }
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool Stream::Impl::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, time, [&] { return !events_.empty() || has_ended_; });
}

void Stream::Impl::cancel() {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
  }
  inbox_->cancel(sequence_id_);
}

Stream::Stream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->cancel();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Stream::~Stream() {
  if (impl_) impl_->cancel();
}

std::optional<Event> Stream::next() {
  return impl_->next();
}

bool Stream::wait_for(std::chrono::milliseconds time) {
  return impl_->wait_for(time);
}

void Stream::cancel() {
  impl_->cancel();
}

void Stream::cancel(int32_t /*choice*/) {
  impl_->cancel();
}

}  // namespace headrace
