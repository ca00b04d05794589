// An engine on the checksum model, on real time and a thread of its own, with faults on demand: for
// tests of what serves it to others.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/engine_options.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace {

struct ChecksumEngineOptions {
  std::string name = "checksum";
  int64_t vocab_size = 1000;
  std::vector<TokenId> end_tokens = {};  ///< none: completions end by their length
  int64_t window = 0;                    ///< if not 0, of a second cache group
  std::chrono::nanoseconds step_delay{0};
  std::chrono::nanoseconds row_delay{0};  ///< for each row of a step, on top
  /// Of the engine, as of make_engine(); `context` must be given, `kv_bytes` means nothing. At most
  /// 128 sequences.
  EngineOptions engine = {};

  // What a request gets whose prompt has such a token; -1: nobody does. (Generated ones do no
  // harm.)
  TokenId throwing_token = -1;  ///< each step that computes it throws
  TokenId spoiled_token = -1;   ///< its logits are NaN, as far as the engine is told
  TokenId hanging_token = -1;   ///< the step that computes it hangs until ChecksumFaults::release
  std::chrono::milliseconds longest_hang{60'000};  ///< it goes on by itself then
};

/// Faults at any time, from any thread.
class ChecksumFaults {
 public:
  /// The next step throws, whoever is in it; its requests are computed again.
  void fail_next_step();
  /// The next step hangs, as one with the hanging token.
  void hang_next_step();
  /// Steps that hang now go on.
  void release();
  /// Waits until a step hangs; false where none did for so long.
  bool wait_for_hang(std::chrono::milliseconds time);

 private:
  friend class ChecksumScript;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool fails_next_ = false;
  bool hangs_next_ = false;
  int64_t num_hanging_ = 0;
  uint64_t num_releases_ = 0;
};

struct ChecksumEngine {
  std::shared_ptr<ChecksumFaults> faults;
  std::unique_ptr<Engine> engine;  ///< its end waits for a step that hangs
};

/// Starts one. Errors: those of make_engine.
Result<ChecksumEngine> make_checksum_engine(const ChecksumEngineOptions& options);

/// The first `num_tokens` tokens of what the checksum model says to a prompt, or those before the
/// first of `end_tokens`.
std::vector<TokenId> expected_tokens(std::span<const TokenId> prompt, uint64_t seed,
                                     int64_t num_tokens, int64_t vocab_size,
                                     std::span<const TokenId> end_tokens = {}, int32_t choice = 0);

}  // namespace headrace
