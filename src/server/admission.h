// How many requests may be inside at once, in all and of each key, and who gets in where there is
// not room for all. Thread-safe. Must not know HTTP.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace headrace::server {

struct AdmissionLimits {
  int64_t max_requests = 1040;                    ///< waiting and running
  int64_t max_waiting_bytes = int64_t{64} << 20;  ///< of bodies that are not yet token ids
};

/// Why a request may not come in now.
struct Refusal {
  std::string message;
  int retry_after_seconds = 1;
};

/// One owner alone may have all places. Where several have asked lately, refused ones too, each has
/// a share: their equal part, one at least. Who has less than that comes in as long as there is a
/// place; who has it leaves one free for each other that has less. So whoever asks again and again
/// gets no more than the rest leaves.
class Admission {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A place inside, until it is let go.
  class Ticket {
   public:
    Ticket(Admission& admission, std::string owner, int64_t bytes);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    /// The body has become token ids.
    void tokenized();

   private:
    Admission& admission_;
    std::string owner_;
    int64_t bytes_;
  };

  explicit Admission(AdmissionLimits limits) : limits_(limits) {}

  /// An owner counts for the shares of the others for so long after it asked, or after the time at
  /// which it was told to ask again.
  static constexpr std::chrono::seconds kActive{30};

  /// Whether one more of `owner`, which asks with this, could come in now. `owner_limit`: 0 is
  /// none.
  std::optional<Refusal> check(const std::string& owner, int64_t owner_limit, int64_t bytes,
                               Time now);
  /// Takes a place, if check() allows it.
  std::unique_ptr<Ticket> enter(const std::string& owner, int64_t owner_limit, int64_t bytes,
                                Time now, std::optional<Refusal>& refusal);
  /// A request was served: what Retry-After is reckoned from.
  void count_done(Time now);

  int64_t num_inside() const;
  /// Until one of those inside has ended, as the last minute lets expect: 1 to 120.
  int retry_after_seconds(Time now) const;

 private:
  struct Owner {
    int64_t num_inside = 0;
    int64_t limit = 0;  ///< 0: none
    Time active_until{};
  };

  std::optional<Refusal> check_locked(const std::string& owner, int64_t owner_limit, int64_t bytes,
                                      Time now);
  /// The record of an owner that asks now. Those that are active no more are forgotten.
  Owner& note(const std::string& owner, int64_t owner_limit, Time now);
  std::optional<Refusal> refusal_of(const Owner& owner, int64_t bytes, Time now) const;
  /// Whether what is free is kept for others than `owner`.
  bool is_kept_from(const Owner& owner, Time now) const;
  int retry_locked(Time now) const;
  void leave(const std::string& owner, int64_t bytes);

  const AdmissionLimits limits_;
  mutable std::mutex mutex_;
  int64_t num_inside_ = 0;
  int64_t waiting_bytes_ = 0;
  std::unordered_map<std::string, Owner> owners_;  ///< those inside, and those active
  double recent_done_ = 0;                         ///< each counts for less and less as time passes
  Time recent_time_{};
};

}  // namespace headrace::server
