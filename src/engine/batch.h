// One step's plan: a ragged batch of rows, and what came of it. Reused from step to step, so that a
// decode step allocates nothing here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/kv_view.h"
#include "engine/sequence.h"
#include "headrace/result.h"
#include "sampling/chain.h"

namespace headrace {

/// The rows of one sequence in a step: tokens [first_position, first_position + num_rows).
struct BatchSequence {
  Sequence* sequence = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  int32_t sample = -1;  ///< index in Batch::samples; -1: its prompt goes on in a later step
};

/// A row whose next token is chosen.
struct BatchSample {
  Sequence* sequence = nullptr;
  SampledToken token{};          ///< filled in by the runner
  std::optional<Error> error{};  ///< or this
  int64_t sampling_ns = 0;
};

struct Batch {
  // By row.
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;
  // By sequence.
  std::vector<BatchSequence> sequences;
  std::vector<std::vector<KvSequence>> caches;  ///< by cache group, then by sequence
  // By sampled row.
  std::vector<int32_t> logit_rows;  ///< ascending
  std::vector<BatchSample> samples;

  void clear() {
    tokens.clear();
    positions.clear();
    sequences.clear();
    for (auto& group : caches) group.clear();
    logit_rows.clear();
    samples.clear();
  }
};

}  // namespace headrace
