// See admission.h.
#include "server/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headrace::server {
namespace {

/// Over which the rate at which requests are served is measured.
constexpr double kMemorySeconds = 30;
constexpr int kMostSeconds = 120;

double decayed(double count, Admission::Time from, Admission::Time to) {
  const double seconds = std::chrono::duration<double>(to - from).count();
  return count * std::exp(-std::max(0.0, seconds) / kMemorySeconds);
}

}  // namespace

Admission::Ticket::Ticket(Admission& admission, std::string owner, int64_t bytes)
    : admission_(admission), owner_(std::move(owner)), bytes_(bytes) {}

Admission::Ticket::~Ticket() {
  admission_.leave(owner_, bytes_);
}

void Admission::Ticket::tokenized() {
  const std::lock_guard lock(admission_.mutex_);
  admission_.waiting_bytes_ -= std::exchange(bytes_, 0);
}

void Admission::leave(const std::string& owner, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  --num_inside_;
  waiting_bytes_ -= bytes;
  const auto found = of_owner_.find(owner);
  if (found != of_owner_.end() && --found->second == 0) of_owner_.erase(found);
}

int Admission::retry_locked(Time now) const {
  const double per_second = decayed(recent_done_, recent_time_, now) / kMemorySeconds;
  // Half of those inside may have to end first.
  const double wanted = std::max(1.0, 0.5 * static_cast<double>(num_inside_));
  if (per_second <= wanted / kMostSeconds) return recent_done_ > 0 ? kMostSeconds : 1;
  return std::clamp(static_cast<int>(std::ceil(wanted / per_second)), 1, kMostSeconds);
}

int Admission::retry_after_seconds(Time now) const {
  const std::lock_guard lock(mutex_);
  return retry_locked(now);
}

std::optional<Refusal> Admission::check_locked(const std::string& owner, int64_t owner_limit,
                                               int64_t bytes, Time now) const {
  if (num_inside_ >= limits_.max_requests) {
    return Refusal{"Too many requests are waiting; try again later.", retry_locked(now)};
  }
  if (waiting_bytes_ > 0 && waiting_bytes_ + bytes > limits_.max_waiting_bytes) {
    return Refusal{"The requests that wait are too large together; try again later.", 1};
  }
  const auto found = of_owner_.find(owner);
  if (owner_limit > 0 && found != of_owner_.end() && found->second >= owner_limit) {
    return Refusal{"This key has as many requests under way as it may have.", retry_locked(now)};
  }
  return std::nullopt;
}

std::optional<Refusal> Admission::check(const std::string& owner, int64_t owner_limit,
                                        int64_t bytes, Time now) const {
  const std::lock_guard lock(mutex_);
  return check_locked(owner, owner_limit, bytes, now);
}

std::unique_ptr<Admission::Ticket> Admission::enter(const std::string& owner, int64_t owner_limit,
                                                    int64_t bytes, Time now,
                                                    std::optional<Refusal>& refusal) {
  auto ticket_owner = owner;
  {
    const std::lock_guard lock(mutex_);
    refusal = check_locked(owner, owner_limit, bytes, now);
    if (refusal) return nullptr;
    ++of_owner_[owner];
    ++num_inside_;
    waiting_bytes_ += bytes;
  }
  return std::make_unique<Ticket>(*this, std::move(ticket_owner), bytes);
}

void Admission::count_done(Time now) {
  const std::lock_guard lock(mutex_);
  recent_done_ = decayed(recent_done_, recent_time_, now) + 1;
  recent_time_ = now;
}

int64_t Admission::num_inside() const {
  const std::lock_guard lock(mutex_);
  return num_inside_;
}

}  // namespace headrace::server
