// See logit_edits.h.
#include "sampling/logit_edits.h"

#include <algorithm>

#include "base/random.h"

namespace headrace {
namespace {

constexpr size_t kFewestSlots = 1024;

}  // namespace

LogitEdits::LogitEdits() : slots_(kFewestSlots) {}

void LogitEdits::reserve(size_t num_rows) {
  constexpr size_t kEditsOfRow = 256;
  edits_.reserve(num_rows * kEditsOfRow);
  rows_.reserve(num_rows);
}

void LogitEdits::clear() {
  edits_.clear();
  rows_.clear();
}

void LogitEdits::begin_row() {
  rows_.push_back(edits_.size());
  if (++generation_ == 0) {  // after 2^32 rows
    std::fill(slots_.begin(), slots_.end(), Slot{});
    generation_ = 1;
  }
}

LogitEdits::Slot& LogitEdits::slot_of(TokenId id) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = mix64(static_cast<uint64_t>(id)) & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.generation != generation_) return slot;
    if (edits_[rows_.back() + slot.index].id == id) return slot;
  }
}

LogitEdit& LogitEdits::of(TokenId id) {
  Slot* slot = &slot_of(id);
  if (slot->generation != generation_) {
    const size_t count = edits_.size() - rows_.back();
    if (2 * count >= slots_.size()) {
      enlarge();
      slot = &slot_of(id);
    }
    edits_.push_back({.id = id});
    *slot = {generation_, static_cast<uint32_t>(count)};
  }
  return edits_[rows_.back() + slot->index];
}

void LogitEdits::enlarge() {
  slots_ = std::vector<Slot>(2 * slots_.size());
  const auto row = current_row();
  for (size_t i = 0; i < row.size(); ++i) {
    slot_of(row[i].id) = {generation_, static_cast<uint32_t>(i)};
  }
}

std::span<LogitEdit> LogitEdits::row(size_t index) {
  const size_t begin = rows_[index];
  const size_t end = index + 1 < rows_.size() ? rows_[index + 1] : edits_.size();
  return std::span(edits_).subspan(begin, end - begin);
}

}  // namespace headrace
