// A model for tests of scheduler and engine: the next token is a hash of the seed and of all tokens
// so far, read back through the block tables from a pretended cache. A lost, repeated or swapped
// token, block or position shows in every token after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/runner.h"
#include "kv/cache_group.h"

namespace headrace {

/// The hash of tokens that come one by one.
class Checksum {
 public:
  Checksum(uint64_t seed, int32_t choice);
  void add(TokenId token);
  /// What the checksum model says after them.
  TokenId next(int64_t vocab_size) const {
    return static_cast<TokenId>(hash_ % static_cast<uint64_t>(vocab_size));
  }

 private:
  uint64_t hash_;
  uint64_t num_tokens_ = 0;
};

/// What the checksum model says after `tokens`, to the choice `choice` of a request.
TokenId checksum_next(std::span<const TokenId> tokens, uint64_t seed, int64_t vocab_size,
                      int32_t choice = 0);
/// The log-probability that it gives the last of `tokens` after the others.
float checksum_score(std::span<const TokenId> tokens);
/// The embedding that it gives them, whatever the pooling: four whole numbers.
std::vector<float> checksum_vector(std::span<const TokenId> tokens);

class ChecksumRunner final : public ModelRunner {
 public:
  /// The first group must have no window: all tokens are read from it. Others are compared with it
  /// where their window reaches.
  ChecksumRunner(ModelInfo info, std::span<const CacheGeometry> geometries,
                 std::span<const int64_t> num_blocks);

  const ModelInfo& info() const override { return info_; }
  int64_t max_logit_rows() const override { return kMaxLogitRows; }
  void launch(Batch& batch) override;
  Result<void> collect(Batch& batch) override;
  std::string device() const override { return "checksum"; }
  uint64_t block_bytes(size_t group) const override;
  void read_block(size_t group, int32_t block, int64_t num_tokens,
                  std::span<std::byte> out) const override;
  void write_block(size_t group, int32_t block, std::span<const std::byte> in) override;

  int64_t num_steps() const { return num_steps_; }
  int64_t num_rows() const { return num_rows_; }
  int64_t most_rows() const { return most_rows_; }
  /// Steps of one sequence that were told to fail: each may have ended its request.
  int64_t num_failed_alone() const { return num_failed_alone_; }
  /// The next step throws instead (launch).
  void fail_next_step() { fails_next_ = true; }
  /// Every step with that token throws: a request that nobody can serve.
  void fail_on(TokenId token) { poison_ = token; }
  /// Called in each step with its rows: where virtual time passes.
  void on_step(std::function<void(int64_t num_rows)> pass_time) {
    pass_time_ = std::move(pass_time);
  }
  /// Called when a step begins, before anything of it is done; what it throws, the step throws.
  void before_step(std::function<void(const Batch& batch)> call) { before_step_ = std::move(call); }
  /// Whose logits are no numbers.
  void spoil_logits_if(std::function<bool(const BatchSequence& part)> is_spoiled) {
    is_spoiled_ = std::move(is_spoiled);
  }
  /// What a sample says is not a number.
  void spoil_logits_of(TokenId token) { spoiled_ = token; }

  static constexpr int64_t kMaxLogitRows = 128;

 private:
  struct Slot {
    TokenId token = -1;
    int32_t position = -1;
  };
  Slot& slot(size_t group, std::span<const int32_t> block_table, int64_t position);
  void copy_blocks(const Batch& batch);
  void read_tokens(const Batch& batch, size_t sequence, int64_t end);

  ModelInfo info_;
  std::vector<CacheGeometry> geometries_;
  std::vector<std::vector<Slot>> slots_;  // by group
  int64_t num_steps_ = 0;
  int64_t num_rows_ = 0;
  int64_t most_rows_ = 0;
  bool fails_next_ = false;
  int64_t num_failed_alone_ = 0;
  bool is_given_up_ = false;
  std::function<void(int64_t)> pass_time_;
  std::function<void(const Batch&)> before_step_;
  std::function<bool(const BatchSequence&)> is_spoiled_;
  TokenId poison_ = -1;
  TokenId spoiled_ = -1;
  std::vector<TokenId> read_;  // of one sequence, from the pretended cache
};

}  // namespace headrace
