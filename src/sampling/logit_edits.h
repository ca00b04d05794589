// The changes that rows' logits need before a token is chosen, one a token. Owns the list of a
// step's rows, one after the other, and a hash table that finds a token in the current row's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/sample_rows.h"

namespace headrace {

class LogitEdits {
 public:
  LogitEdits();
  /// Memory for that many rows of usual length. Throws std::bad_alloc.
  void reserve(size_t num_rows);

  /// Forgets all rows.
  void clear();
  /// What follows belongs to the next row.
  void begin_row();
  /// The current row's edit of a token, made if there is none. Valid until the next call.
  LogitEdit& of(TokenId id);
  std::span<LogitEdit> current_row() { return row(rows_.size() - 1); }

  /// Memory for a step that counts something along the history; what is in it does not matter.
  std::vector<int64_t>& lengths() { return lengths_; }

  size_t num_rows() const { return rows_.size(); }
  /// Valid until an edit is made.
  std::span<LogitEdit> row(size_t index);

 private:
  /// Small enough for the first cache, where an array by token id would not be.
  struct Slot {
    uint32_t generation = 0;  ///< taken if it is the current row's
    uint32_t index = 0;       ///< in the current row
  };

  Slot& slot_of(TokenId id);
  void enlarge();

  std::vector<LogitEdit> edits_;
  std::vector<size_t> rows_;  ///< where each begins
  std::vector<Slot> slots_;   ///< open addressing; a power of two, at most half of them taken
  uint32_t generation_ = 0;
  std::vector<int64_t> lengths_;
};

}  // namespace headrace
