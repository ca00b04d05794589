// See checksum_runner.h.
#include "engine/checksum_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace headrace {

TokenId checksum_next(std::span<const TokenId> tokens, uint64_t seed, int64_t vocab_size) {
  uint64_t hash = mix64(seed);
  for (size_t i = 0; i < tokens.size(); ++i) {
    hash = mix64(hash ^ (static_cast<uint64_t>(tokens[i]) << 32 | i));
  }
  return static_cast<TokenId>(hash % static_cast<uint64_t>(vocab_size));
}

ChecksumRunner::ChecksumRunner(ModelInfo info, std::span<const CacheGeometry> geometries,
                               std::span<const int64_t> num_blocks)
    : info_(std::move(info)), geometries_(geometries.begin(), geometries.end()) {
  HEADRACE_CHECK(!geometries.empty() && geometries.front().window == 0);
  for (size_t i = 0; i < geometries.size(); ++i) {
    slots_.emplace_back(static_cast<size_t>(num_blocks[i] * geometries[i].block_tokens));
  }
}

ChecksumRunner::Slot& ChecksumRunner::slot(size_t group, std::span<const int32_t> block_table,
                                           int64_t position) {
  const int64_t block_tokens = geometries_[group].block_tokens;
  const auto index = static_cast<size_t>(position / block_tokens);
  HEADRACE_CHECK_LT(index, block_table.size());
  HEADRACE_CHECK_GE(block_table[index], 0);
  return slots_[group].at(
      static_cast<size_t>(block_table[index] * block_tokens + position % block_tokens));
}

void ChecksumRunner::launch(Batch& batch) {
  if (std::exchange(fails_next_, false)) throw InternalError("a step that was told to fail");
  ++num_steps_;
  most_rows_ = std::max(most_rows_, static_cast<int64_t>(batch.tokens.size()));
  // All rows of the step are written before any is read, as in a layer.
  for (size_t group = 0; group < slots_.size(); ++group) {
    for (const KvSequence& sequence : batch.caches[group]) {
      for (int64_t i = 0; i < sequence.num_rows; ++i) {
        const auto row = static_cast<size_t>(sequence.first_row + i);
        HEADRACE_CHECK_EQ(batch.positions[row], sequence.first_position + i);
        slot(group, sequence.block_table, sequence.first_position + i) = {
            batch.tokens[row], sequence.first_position + i};
      }
    }
  }
}

Result<void> ChecksumRunner::collect(Batch& batch) {
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const BatchSequence& part = batch.sequences[i];
    if (part.sample < 0) continue;
    const int64_t end = part.first_position + part.num_rows;
    std::vector<TokenId> tokens;
    for (int64_t position = 0; position < end; ++position) {
      const Slot& full = slot(0, batch.caches[0][i].block_table, position);
      tokens.push_back(full.position == position ? full.token : -1);
      for (size_t group = 1; group < slots_.size(); ++group) {
        if (end - 1 - position >= geometries_[group].window) continue;
        const Slot& windowed = slot(group, batch.caches[group][i].block_table, position);
        if (windowed.token != full.token || windowed.position != position) tokens.back() = -2;
      }
    }
    BatchSample& sample = batch.samples[static_cast<size_t>(part.sample)];
    HEADRACE_CHECK_EQ(batch.logit_rows[static_cast<size_t>(part.sample)],
                      part.first_row + part.num_rows - 1);
    sample.token.id = checksum_next(tokens, part.sequence->chain.seed(), info_.vocab_size);
  }
  return {};
}

}  // namespace headrace
