// Backend::linear_top on the CPU: finds the largest outputs of a matrix in two planes (see
// panel_layout.h) from its upper bits, and computes with all bits only the panels that can have
// one of them. Owns the memory for it. What it answers never depends on what it saw before, only
// how fast.
//
// With the exact row x as its integers say it, W = U + L the weights as their upper and lower bits,
// and a row of outputs o: |(W x)[o] - (U x)[o]| <= sum over blocks |L[o][block]| |x[block]|
// <= |L[o]| |x| (Cauchy-Schwarz). Both float32 sums are off by at most about (blocks + 3) roundings
// of |W[o]| |x| and |U[o]| |x|. The num_top-th largest of some outputs that are computed with all
// bits is no larger than that of all outputs; a panel is left out if all its outputs must be
// smaller.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/context.h"
#include "backend/cpu/matrix.h"
#include "backend/cpu/row_scan.h"

namespace headrace {

class TopSearch {
 public:
  explicit TopSearch(CpuContext& context) : context_(context), scanner_(context) {}

  /// Memory for matrices of that many rows and columns. Throws std::bad_alloc.
  void reserve(int64_t rows, int64_t cols);

  /// Does what linear_top should, or returns false where all outputs had better be computed: other
  /// matrices, several rows, numbers without bounds, and for some calls after one that left little
  /// out.
  bool run(const LinearInput& x, const LinearTask& task, int32_t num_top);

  /// Of the last run that returned true: panels computed with all bits, after the first few.
  int64_t panels_computed() const { return panels_computed_; }

 private:
  /// Norms of the row of activations.
  struct Input {
    QuantizedRows row;
    float norm = 0;
    const float* block_norms = nullptr;  ///< [blocks]
  };
  /// How often searches for few and for many outputs are not worth it.
  struct Pause {
    int32_t left = 0;  ///< calls until the next search
    int32_t last = 0;
  };

  bool measure(const LinearInput& x, Input& input);
  void multiply_coarse(const CpuMatrix& matrix, const Input& input, float* out);
  float lowest_of_top(const CpuMatrix& matrix, const Input& input, const float* coarse,
                      int32_t num_top);
  void compute_rest(const CpuMatrix& matrix, const Input& input, float least, float* out);
  void compute(const CpuMatrix& matrix, const Input& input, int64_t panel, float* out) const;
  void multiply(const CpuMatrix& matrix, const Input& input, PanelFormat format, int64_t first,
                int64_t end, float* out) const;

  CpuContext& context_;
  RowScanner scanner_;
  std::vector<float> block_norms_;
  std::vector<TokenLogit> top_;
  std::vector<int64_t> panels_;  ///< of top_
  std::vector<float> exact_;     ///< outputs of panels_
  std::array<Pause, 2> pauses_;  ///< of num_top 1, of others
  int64_t panels_computed_ = 0;
};

}  // namespace headrace
