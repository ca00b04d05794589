// See logit_edits.h.
#include "sampling/logit_edits.h"

namespace headrace {

LogitEdits::LogitEdits(int64_t vocab_size) : index_of_(static_cast<size_t>(vocab_size)) {}

void LogitEdits::reserve(size_t num_rows) {
  constexpr size_t kEditsOfRow = 256;
  edits_.reserve(num_rows * kEditsOfRow);
  rows_.reserve(num_rows);
}

void LogitEdits::clear() {
  forget_index();
  edits_.clear();
  rows_.clear();
}

void LogitEdits::begin_row() {
  forget_index();
  rows_.push_back(edits_.size());
}

void LogitEdits::forget_index() {
  if (rows_.empty()) return;
  for (const LogitEdit& one : current_row()) index_of_[static_cast<size_t>(one.id)] = 0;
}

LogitEdit& LogitEdits::of(TokenId id) {
  uint32_t& index = index_of_[static_cast<size_t>(id)];
  if (index == 0) {
    edits_.push_back({.id = id});
    index = static_cast<uint32_t>(edits_.size() - rows_.back());
  }
  return edits_[rows_.back() + index - 1];
}

std::span<LogitEdit> LogitEdits::current_row() {
  return row(rows_.size() - 1);
}

std::span<LogitEdit> LogitEdits::row(size_t index) {
  const size_t begin = rows_[index];
  const size_t end = index + 1 < rows_.size() ? rows_[index + 1] : edits_.size();
  return std::span(edits_).subspan(begin, end - begin);
}

}  // namespace headrace
