// One step's plan: a ragged batch of rows, and what came of it. Reused from step to step, so that a
// decode step allocates nothing here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/kv_view.h"
#include "engine/scheduler/sequence.h"
#include "headrace/result.h"
#include "kv/kv_cache.h"
#include "sampling/chain.h"

namespace headrace {

/// The rows of one sequence in a step: tokens [first_position, first_position + num_rows).
struct BatchSequence {
  Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  int32_t first_score = 0;     ///< in Batch::samples
  int32_t num_scores = 0;      ///< of prompt tokens
  int32_t sample = -1;         ///< index in Batch::samples; -1: its prompt goes on in a later step
  int32_t first_embedded = 0;  ///< in Batch::embedding_rows
  int32_t num_embedded = 0;    ///< rows of it whose vectors are pooled
  int32_t embedding = -1;      ///< index in Batch::embeddings; -1: its prompt goes on
};

/// A row with logits: its next token is chosen, or the prompt's own next token is looked up in it.
struct BatchSample {
  Sequence* sequence = nullptr;
  int64_t scored_position = -1;  ///< of the token that is looked up; -1: one is chosen
  SampledToken token{};          ///< filled in by the runner
  std::optional<Error> error{};  ///< or this
  int64_t sampling_ns = 0;
};

/// The vector or the scores of a prompt that ends in this step.
struct BatchEmbedding {
  Sequence* sequence = nullptr;
  std::vector<float> values{};   ///< filled in by the runner
  std::optional<Error> error{};  ///< or this
};

struct Batch {
  // By row.
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> token_types;  ///< 1: of the second text of a pair
  // By sequence.
  std::vector<BatchSequence> sequences;
  std::vector<std::vector<KvSequence>> caches;  ///< by cache group, then by sequence
  // By row with logits.
  std::vector<int32_t> logit_rows;  ///< ascending
  std::vector<BatchSample> samples;
  // By row whose vector is pooled, and by prompt that ends.
  std::vector<int32_t> embedding_rows;  ///< ascending
  std::vector<BatchEmbedding> embeddings;
  int64_t sampling_ns = 0;  ///< filled in by the runner: of the whole step, choosing tokens
  int32_t num_top = 0;      ///< filled in by the runner: StepInput::num_top
  /// Blocks to be copied before the step.
  std::vector<BlockCopy> copies;

  int64_t num_rows() const { return static_cast<int64_t>(tokens.size()); }
  bool is_empty() const { return sequences.empty(); }
  /// Whether all its requests are to be cancelled. From any thread while the step runs.
  bool is_unwanted() const {
    return std::all_of(sequences.begin(), sequences.end(), [](const BatchSequence& part) {
      return part.sequence->stream->is_unwanted();
    });
  }
  /// All but the copies, whose blocks are held.
  void clear() {
    tokens.clear();
    positions.clear();
    token_types.clear();
    sequences.clear();
    for (auto& group : caches) group.clear();
    logit_rows.clear();
    samples.clear();
    embedding_rows.clear();
    embeddings.clear();
    sampling_ns = 0;
    num_top = 0;
  }
};

}  // namespace headrace
