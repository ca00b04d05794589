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
  --owners_[owner].num_inside;
}

Admission::Owner& Admission::note(const std::string& owner, int64_t owner_limit, Time now) {
  Owner& out = owners_[owner];
  out.limit = owner_limit;
  out.active_until = std::max(out.active_until, now + kActive);
  std::erase_if(owners_, [&](const auto& each) {
    return each.second.num_inside == 0 && each.second.active_until < now;
  });
  return out;
}

bool Admission::is_kept_from(const Owner& owner, Time now) const {
  const auto num_owners = static_cast<int64_t>(owners_.size());
  const int64_t share = std::max<int64_t>(1, limits_.max_requests / num_owners);
  if (num_owners == 1 || owner.num_inside < share) return false;
  const auto num_short = std::count_if(owners_.begin(), owners_.end(), [&](const auto& each) {
    const Owner& other = each.second;
    const int64_t most = other.limit > 0 ? std::min(other.limit, share) : share;
    return &other != &owner && other.active_until >= now && other.num_inside < most;
  });
  return limits_.max_requests - num_inside_ <= num_short;
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
                                               int64_t bytes, Time now) {
  Owner& asking = note(owner, owner_limit, now);
  auto out = refusal_of(asking, bytes, now);
  if (out) {
    const Time again = now + std::chrono::seconds(out->retry_after_seconds);
    asking.active_until = std::max(asking.active_until, again + kActive);
  }
  return out;
}

std::optional<Refusal> Admission::refusal_of(const Owner& owner, int64_t bytes, Time now) const {
  if (num_inside_ >= limits_.max_requests) {
    return Refusal{"Too many requests are waiting; try again later.", retry_locked(now)};
  }
  if (waiting_bytes_ > 0 && waiting_bytes_ + bytes > limits_.max_waiting_bytes) {
    return Refusal{"The requests that wait are too large together; try again later.", 1};
  }
  if (owner.limit > 0 && owner.num_inside >= owner.limit) {
    return Refusal{"This key has as many requests under way as it may have.", retry_locked(now)};
  }
  if (is_kept_from(owner, now)) {
    return Refusal{"This key has its share of the places, and others ask too; try again later.",
                   retry_locked(now)};
  }
  return std::nullopt;
}

std::optional<Refusal> Admission::check(const std::string& owner, int64_t owner_limit,
                                        int64_t bytes, Time now) {
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
    ++owners_[owner].num_inside;
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
