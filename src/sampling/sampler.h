// Chooses the tokens of a step's rows: asks the backend about all of them at once, then runs each
// row's chain on the small answer. Owns the memory for it, so that choosing does not allocate. Must
// not know sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "sampling/chain.h"

namespace headrace {

class Sampler {
 public:
  /// `backend` must outlive the sampler. Throws std::bad_alloc.
  Sampler(Backend& backend, int64_t max_rows, int64_t vocab_size);

  /// Forgets the rows of the step before.
  void clear();
  /// One more row; `chain` and the tokens of `history` must stay until its token is chosen.
  void add(Chain& chain, const TokenHistory& history);
  /// One more row, in which nothing is chosen: the log-probability of `token` is wanted, and those
  /// of the `num_top` most likely.
  void add_score(TokenId token, int32_t num_top);
  /// Asks about logits [rows added, vocab_size]. Edits them in place.
  void run(const Tensor& logits);
  /// The token of a row, chosen or as given to add_score. Errors: see Chain::choose.
  Result<SampledToken> choose(size_t row);

 private:
  struct Row {
    Chain* chain = nullptr;  ///< none: a score
    TokenHistory history{};
    TokenId token = -1;  ///< of a score
    int32_t num_top = 0;
  };

  Result<SampledToken> score(size_t row, FunctionRef<std::span<float>()> read) const;

  Backend& backend_;
  Tensor logits_;
  std::vector<Row> rows_;
  std::vector<RowQuery> queries_;
  std::vector<RowSummary> summaries_;
  LogitEdits edits_;
  Candidates candidates_;
  std::vector<float> row_;  ///< on the host, when the whole of it is needed
};

}  // namespace headrace
