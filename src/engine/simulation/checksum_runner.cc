// See checksum_runner.h.
#include "engine/simulation/checksum_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace headrace {

Checksum::Checksum(uint64_t seed, int32_t choice)
    : hash_(mix64(seed ^ (static_cast<uint64_t>(choice) << 48))) {}

void Checksum::add(TokenId token) {
  hash_ = mix64(hash_ ^ (static_cast<uint64_t>(token) << 32 | num_tokens_++));
}

TokenId checksum_next(std::span<const TokenId> tokens, uint64_t seed, int64_t vocab_size,
                      int32_t choice) {
  Checksum checksum(seed, choice);
  for (const TokenId token : tokens) checksum.add(token);
  return checksum.next(vocab_size);
}

float checksum_score(std::span<const TokenId> tokens) {
  return -static_cast<float>(checksum_next(tokens, 0, 1 << 20));
}

std::vector<float> checksum_vector(std::span<const TokenId> tokens) {
  std::vector<float> out;
  for (uint64_t i = 0; i < 4; ++i) {
    out.push_back(1 + static_cast<float>(checksum_next(tokens, i, 1 << 20)));
  }
  return out;
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

uint64_t ChecksumRunner::block_bytes(size_t group) const {
  return static_cast<uint64_t>(geometries_[group].block_tokens) * sizeof(Slot);
}

void ChecksumRunner::read_block(size_t group, int32_t block, int64_t num_tokens,
                                std::span<std::byte> out) const {
  HEADRACE_CHECK_EQ(out.size(), block_bytes(group));
  std::fill(out.begin(), out.end(), std::byte{0});
  const Slot* first =
      &slots_[group].at(static_cast<size_t>(block * geometries_[group].block_tokens));
  std::memcpy(out.data(), first, static_cast<size_t>(num_tokens) * sizeof(Slot));
}

void ChecksumRunner::write_block(size_t group, int32_t block, std::span<const std::byte> in) {
  HEADRACE_CHECK_EQ(in.size(), block_bytes(group));
  Slot* first = &slots_[group].at(static_cast<size_t>(block * geometries_[group].block_tokens));
  std::memcpy(first, in.data(), in.size());
}

void ChecksumRunner::copy_blocks(const Batch& batch) {
  for (const BlockCopy& copy : batch.copies) {
    const auto group = static_cast<size_t>(copy.group);
    const int64_t size = geometries_[group].block_tokens;
    HEADRACE_CHECK_NE(copy.from, copy.to);
    std::copy_n(slots_[group].begin() + copy.from * size, size,
                slots_[group].begin() + copy.to * size);
  }
}

void ChecksumRunner::launch(Batch& batch) {
  if (before_step_) before_step_(batch);
  if (std::exchange(fails_next_, false)) {
    if (batch.sequences.size() == 1) ++num_failed_alone_;
    throw InternalError("a step that was told to fail");
  }
  if (std::find(batch.tokens.begin(), batch.tokens.end(), poison_) != batch.tokens.end()) {
    throw InternalError("a step with a token that it fails on");
  }
  ++num_steps_;
  if (pass_time_) pass_time_(static_cast<int64_t>(batch.tokens.size()));
  is_given_up_ = batch.is_unwanted();
  if (is_given_up_) return;
  num_rows_ += static_cast<int64_t>(batch.tokens.size());
  most_rows_ = std::max(most_rows_, static_cast<int64_t>(batch.tokens.size()));
  HEADRACE_CHECK_LE(static_cast<int64_t>(batch.logit_rows.size()), kMaxLogitRows);
  copy_blocks(batch);
  // All rows of the step are written before any is read, as in a layer.
  for (size_t group = 0; group < slots_.size(); ++group) {
    for (const KvSequence& sequence : batch.caches[group]) {
      for (int64_t i = 0; i < sequence.num_rows; ++i) {
        const auto row = static_cast<size_t>(sequence.first_row + i);
        HEADRACE_CHECK_EQ(batch.positions[row], sequence.first_position + i);
        slot(group, sequence.block_table, sequence.first_position + i) = {
            batch.tokens[row], static_cast<int32_t>(sequence.first_position + i)};
      }
    }
  }
}

// The first `end` tokens of a sequence, as its blocks have them.
void ChecksumRunner::read_tokens(const Batch& batch, size_t sequence, int64_t end) {
  read_.clear();
  for (int64_t position = 0; position < end; ++position) {
    const Slot& full = slot(0, batch.caches[0][sequence].block_table, position);
    read_.push_back(full.position == position ? full.token : -1);
    for (size_t group = 1; group < slots_.size(); ++group) {
      if (end - 1 - position >= geometries_[group].window) continue;
      const Slot& windowed = slot(group, batch.caches[group][sequence].block_table, position);
      if (windowed.token != full.token || windowed.position != position) read_.back() = -2;
    }
  }
}

Result<void> ChecksumRunner::collect(Batch& batch) {
  if (is_given_up_) return Error{ErrorCode::cancelled, "nobody wants this step", "", ""};
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const BatchSequence& part = batch.sequences[i];
    if (part.sample < 0 && part.num_scores == 0 && part.embedding < 0) continue;
    read_tokens(batch, i, part.first_position + part.num_rows);
    const std::span<const TokenId> all(read_);
    if (part.embedding >= 0) {
      BatchEmbedding& out = batch.embeddings[static_cast<size_t>(part.embedding)];
      out.values = checksum_vector(all);
      if (is_spoiled_ && is_spoiled_(part)) {
        out.error = Error{ErrorCode::internal, "the model's embedding is no numbers", "", ""};
      }
      continue;
    }
    for (int32_t at = part.first_score; at < part.first_score + part.num_scores; ++at) {
      BatchSample& sample = batch.samples[static_cast<size_t>(at)];
      // The token that is scored may come in a later step.
      std::vector<TokenId> tokens(all.begin(), all.begin() + sample.scored_position);
      sample.token.id = part.sequence->tokens[static_cast<size_t>(sample.scored_position)];
      tokens.push_back(sample.token.id);
      sample.token.logprob = checksum_score(tokens);
    }
    if (part.sample < 0) continue;
    BatchSample& sample = batch.samples[static_cast<size_t>(part.sample)];
    HEADRACE_CHECK_EQ(batch.logit_rows[static_cast<size_t>(part.sample)],
                      part.first_row + part.num_rows - 1);
    if (all.back() == spoiled_ || (is_spoiled_ && is_spoiled_(part))) {
      sample.error = Error{ErrorCode::internal, "the model's logits are no numbers", "", ""};
      continue;
    }
    sample.token.id =
        checksum_next(all, part.sequence->chain.seed(), info_.vocab_size, part.sequence->choice);
  }
  return {};
}

}  // namespace headrace
