// Who waits, in the order in which they are to be admitted. Must not know blocks or batches.
//
// First by priority class, then fairly among owners, then by arrival.
//
// A request counts as one class up after each aging_ns for which none of its owner and class was
// admitted: so nobody waits for ever, and one owner's many requests do not grow old together.
// Fairness is start-time fair queueing (Goyal, Vin and Cheng 1996): a request's tag is the larger
// of the virtual time and the tag at which its owner's last one ended, which is later by what that
// one costs, in tokens. The virtual time is the tag of the last one admitted, and moves on with
// what that costs, shared among the owners who wait: who comes new does not go before those who
// wait already again and again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/sequence.h"

namespace headrace {

class WaitingQueue {
 public:
  explicit WaitingQueue(int64_t aging_ns) : aging_ns_(aging_ns) {}

  /// Makes sure that add() finds memory for so many. Throws std::bad_alloc.
  void reserve(size_t num_sequences) { sequences_.reserve(num_sequences); }
  /// Gives the choices of a new request their tag. Throws std::bad_alloc.
  void set_tag(const std::vector<Sequence*>& choices);
  /// Puts a sequence into its place.
  void add(Sequence& sequence, int64_t now_ns) noexcept;
  void remove(Sequence& sequence);
  /// The sequence, which is removed by the caller, is admitted.
  void note_admission(Sequence& sequence, int64_t now_ns);
  /// Moves up who has waited long enough.
  void age(int64_t now_ns);

  bool is_empty() const { return sequences_.empty(); }
  size_t size() const { return sequences_.size(); }
  Sequence& operator[](size_t index) const { return *sequences_[index]; }
  auto begin() const { return sequences_.begin(); }
  auto end() const { return sequences_.end(); }

  /// Throws InternalError unless the order is right.
  void check_invariants() const;

 private:
  int32_t priority_at(const Sequence& sequence, int64_t now_ns) const;

  const int64_t aging_ns_;
  int64_t next_aging_ns_ = 0;
  double virtual_time_ = 0;
  std::map<std::pair<std::string, int32_t>, std::shared_ptr<OwnerLine>> lines_;
  int64_t num_active_lines_ = 0;  // with requests that wait
  std::vector<Sequence*> sequences_;
};

}  // namespace headrace
