// See stream_impl.h and headrace/engine.h.
#include <algorithm>
#include <utility>

#include "engine/inbox.h"
#include "engine/stream_impl.h"

namespace headrace {

namespace {

/// Of the lists that an event may have; the texts of the last ones count for nothing.
int64_t bytes_of(const Event& event) {
  size_t bytes = sizeof(Event);
  if (const auto* token = std::get_if<TokenEvent>(&event)) {
    bytes += token->top.capacity() * sizeof(TokenLogprob);
  } else if (const auto* scores = std::get_if<PromptLogprobsEvent>(&event)) {
    bytes += scores->tokens.capacity() * sizeof(PromptLogprob);
    for (const PromptLogprob& score : scores->tokens) {
      bytes += score.top.capacity() * sizeof(TokenLogprob);
    }
  } else if (const auto* embedding = std::get_if<EmbeddingEvent>(&event)) {
    bytes += embedding->values.capacity() * sizeof(float);
  } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
    if (finish->timeline) bytes += finish->timeline->entries.capacity() * sizeof(TimelineEntry);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

Stream::Impl::Impl(std::shared_ptr<Inbox> inbox, uint64_t request_id, int32_t num_choices,
                   int64_t max_unread_bytes)
    : inbox_(std::move(inbox)),
      request_id_(request_id),
      max_unread_bytes_(max_unread_bytes),
      num_open_(num_choices) {
  choices.reserve(static_cast<size_t>(num_choices));
}

void Stream::Impl::push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    const bool is_finish = std::holds_alternative<FinishEvent>(event);
    const bool is_error = std::holds_alternative<ErrorEvent>(event);
    const int64_t bytes = bytes_of(event);
    events_.push_back(std::move(event));
    unread_bytes_ += bytes;
    if (unread_bytes_ >= max_unread_bytes_) is_full_.store(true, std::memory_order_release);
    if (is_finish) --num_open_;
    has_ended_ = is_error || num_open_ == 0;
  }
  arrived_.notify_all();
}

void Stream::Impl::break_off(ErrorCode code) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = has_broken_off_ = owes_error_ = true;
    broken_by_ = code;
  }
  arrived_.notify_all();
}

bool Stream::Impl::has_broken_off() const noexcept {
  const std::lock_guard lock(mutex_);
  return has_broken_off_;
}

std::optional<Event> Stream::Impl::next() {
  bool has_caught_up = false;
  auto event = next(has_caught_up);
  if (has_caught_up) inbox_->wake();
  return event;
}

std::optional<Event> Stream::Impl::next(bool& has_caught_up) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return !events_.empty() || has_ended_; });
  if (events_.empty() && owes_error_) {
    const bool is_memory = broken_by_ == ErrorCode::resource_exhausted;
    Event error = ErrorEvent{
        {broken_by_,
         is_memory ? "there was not enough memory to go on with this request"
                   : "the engine found an error of its own and gave up what it was working on",
         "", is_memory ? "" : "send the request again"}};
    owes_error_ = false;
    return error;
  }
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  unread_bytes_ -= bytes_of(event);
  if (is_full() && unread_bytes_ <= max_unread_bytes_ / 2) {
    is_full_.store(false, std::memory_order_release);
    has_caught_up = !has_ended_;
  }
  return event;
}

bool Stream::Impl::wait_for(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::years(1);  // no sum overflows
  time = std::min(time, kLongest);
  std::unique_lock lock(mutex_);
  const auto has_news = [&] { return !events_.empty() || has_ended_; };
  return time.count() <= 0 ? has_news() : arrived_.wait_for(lock, time, has_news);
}

void Stream::Impl::cancel(int32_t choice) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
  }
  if (choice < 0) is_unwanted_.store(true, std::memory_order_relaxed);
  inbox_->cancel(shared_from_this(), choice);
}

Stream::Stream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->cancel(-1);
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Stream::~Stream() {
  if (impl_) impl_->cancel(-1);
}

std::optional<Event> Stream::next() {
  return impl_->next();
}

bool Stream::wait_for(std::chrono::milliseconds time) {
  return impl_->wait_for(time);
}

void Stream::cancel() {
  impl_->cancel(-1);
}

void Stream::cancel(int32_t choice) {
  impl_->cancel(choice);
}

}  // namespace headrace
