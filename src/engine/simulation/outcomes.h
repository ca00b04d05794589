// What the simulation's requests were told, compared with what the checksum model says.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "headrace/engine.h"

namespace headrace {

/// Something is not as it should be.
struct SimulationFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A request that was taken, and what came of it so far.
struct OpenRequest {
  struct Choice {
    std::vector<TokenId> tokens;
    std::optional<FinishEvent> finish;
  };

  Request request;
  std::optional<Stream> stream;
  std::vector<Choice> choices;
  int64_t num_scored = 1;
  std::optional<Error> error;
  int64_t arrived_ns = 0;
  int64_t cancel_ns = INT64_MAX;
  int64_t rests_until_ns = 0;     ///< nobody reads before
  int32_t cancelled_choice = -2;  ///< -2: none yet; -1: all
  bool has_ended = false;

  bool contains(TokenId id) const;
  /// Notes an event. Throws SimulationFault if it may not come now, or if its scores are wrong.
  void read(const Event& event);
};

struct OutcomeCounts {
  int64_t num_finished = 0;  ///< choices that ended by themselves, with the right tokens
  int64_t num_cancelled = 0;
  int64_t num_expired = 0;
  int64_t num_failed = 0;
};

/// Checks how requests ended; throws SimulationFault.
class Outcomes {
 public:
  /// `memory_fails`: whether allocations are made to fail.
  Outcomes(int64_t max_context, bool memory_fails)
      : max_context_(max_context), memory_fails_(memory_fails) {}
  /// So many requests may have ended since a step of theirs alone was made to fail.
  void note_failed_alone(int64_t count) { num_failed_alone_ = count; }
  void check(const OpenRequest& open, int64_t now_ns);
  const OutcomeCounts& counts() const { return counts_; }

 private:
  void check_choice(const OpenRequest& open, int32_t index);
  void check_error(const OpenRequest& open, int64_t now_ns);

  const int64_t max_context_;
  const bool memory_fails_;
  int64_t num_failed_alone_ = 0;
  int64_t num_unlucky_ = 0;
  OutcomeCounts counts_;
};

}  // namespace headrace
