// The tokens that may still be chosen for one row. Owns the list; the steps shorten it. Reused from
// row to row, so that choosing does not allocate.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "backend/sample_rows.h"
#include "headrace/token.h"

namespace headrace {

struct Candidate {
  TokenId id = 0;
  float logit = 0;
  double weight = -1;  ///< exp(Candidates::distance()); below 0: not yet computed
};

/// Either the whole of a row, or its most likely tokens, in order (a part). A step that has not got
/// enough tokens to decide leaves a part as it is, so that one that is still a part after all steps
/// says: the whole row is needed. Steps cut a part and the whole row to the same list, bit for bit.
class Candidates {
 public:
  /// Memory for rows of that many logits. Throws std::bad_alloc.
  void reserve(size_t vocab_size) { list_.reserve(vocab_size); }
  /// All tokens whose logit is not -Inf and not below `least`, in the order of their ids. For a
  /// higher `least` than -Inf the steps to come must drop what is below it anyway; one token is
  /// not.
  void assign(std::span<const float> logits, float least = -std::numeric_limits<float>::infinity());
  /// The most likely tokens of a row, in order. `is_all`: there are no others above -Inf.
  void assign_most_likely(std::span<const TokenLogit> tokens, bool is_all);

  /// Before any weight is asked for.
  void set_temperature(float temperature) { temperature_ = temperature; }
  float temperature() const { return temperature_; }
  /// The weight of all tokens, where the backend has summed it; until the list is cut.
  void set_total_weight(double total) { total_ = total; }

  bool is_part() const { return is_part_; }

  std::span<const Candidate> all() const { return list_; }
  /// To drop or reorder some of them; cut() comes after.
  std::vector<Candidate>& list() { return list_; }
  size_t size() const { return list_.size(); }

  /// The distance of a logit to the row's largest, divided by the temperature: at most 0.
  double distance(float logit) const {
    // In double no distance overflows, nor does the smallest temperature make NaN of it.
    return (static_cast<double>(logit) - static_cast<double>(largest_)) /
           static_cast<double>(temperature_);
  }
  /// The weight of one of the list.
  double weight(size_t index) { return weigh(list_[index]); }
  /// Computes the weights of all of the list.
  void ensure_weights();
  /// Sum of the weights: the given one, else in the list's order (not of a part).
  double total_weight();
  /// Brings the `count` most likely to the front, in order.
  void sort_first(size_t count);
  /// Keeps the first `count`.
  void keep_first(size_t count);
  /// Some have been taken out of the list, which is all of the row; the others stand as they did.
  void shorten();
  /// The list is now all that is left of the row. Puts it in order, most likely first.
  void cut();

 private:
  double weigh(Candidate& one) const;
  void clear();

  std::vector<Candidate> list_;
  size_t num_sorted_ = 0;
  bool is_part_ = false;
  float largest_ = 0;  ///< logit of the row
  float temperature_ = 1.0F;
  std::optional<double> total_;
};

}  // namespace headrace
