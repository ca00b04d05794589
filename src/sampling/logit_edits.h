// The changes that rows' logits need before a token is chosen, one a token. Owns the list of a
// step's rows, one after the other, and the index that finds a token in the current row's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/sample_rows.h"

namespace headrace {

class LogitEdits {
 public:
  explicit LogitEdits(int64_t vocab_size);
  /// Memory for that many rows of usual length. Throws std::bad_alloc.
  void reserve(size_t num_rows);

  /// Forgets all rows.
  void clear();
  /// What follows belongs to the next row.
  void begin_row();
  /// The current row's edit of a token, made if there is none. Valid until the next call.
  LogitEdit& of(TokenId id);
  std::span<LogitEdit> current_row();

  size_t num_rows() const { return rows_.size(); }
  /// Valid until an edit is made.
  std::span<LogitEdit> row(size_t index);

 private:
  void forget_index();

  std::vector<LogitEdit> edits_;
  std::vector<size_t> rows_;        ///< where each begins
  std::vector<uint32_t> index_of_;  ///< by token id: 1 + index in the current row, or 0
};

}  // namespace headrace
