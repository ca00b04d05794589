// Some rows of an input and the products that share them: what one parallel region computes is a
// list of these.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/matrix.h"

namespace headrace {

/// Which forms a group needs.
struct InputForms {
  bool floats = false;
  bool integers = false;
  bool tiles = false;
  bool signed_codes = false;  ///< of integers: some are for weights of signed codes

  void add(InputForm form) {
    floats |= form == InputForm::floats;
    integers |= form == InputForm::integers;
    tiles |= form == InputForm::tiles;
  }
  void add(const InputForms& forms) {
    floats |= forms.floats;
    integers |= forms.integers;
    tiles |= forms.tiles;
    signed_codes |= forms.signed_codes;
  }
};

/// Rows of activations, [rows, cols]; forms that were not asked for are empty.
struct PreparedInput {
  Tensor floats;
  QuantizedRows integers;
  TileRows tiles;
};

/// How the outputs of a group are shared out: items are runs of panels, counted through all tasks,
/// times groups of rows.
struct Shares {
  int64_t panels_a_share = 0;
  int64_t num_shares = 0;
  int64_t rows_a_group = 0;
  int64_t num_groups = 0;

  int64_t num_items() const { return num_shares * num_groups; }
};

struct LinearGroup {
  LinearInput input;
  /// Which rows of it, one or more; empty: all, in their order.
  std::span<const int32_t> rows;
  std::span<const LinearTask> tasks;  ///< their outputs have one row for each of these
  /// The rows are those of the group before.
  bool has_rows_of_last = false;

  // Made while the products are computed.
  InputForms forms;
  PreparedInput prepared;
  Shares shares;
  int64_t first_item = 0;

  int64_t num_rows() const {
    return rows.empty() ? input.x.rows : static_cast<int64_t>(rows.size());
  }
  int64_t cols() const { return input.x.cols; }
};

}  // namespace headrace
