// The buffers that a step's activations live in, shared by all layers of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"

namespace headrace {

/// How wide the buffers are, in features.
struct ActivationSizes {
  int64_t embedding = 0;
  int64_t queries = 0;  ///< num_heads * head_dim
  int64_t keys = 0;     ///< num_kv_heads * head_dim
  int64_t feed_forward = 0;
  int64_t vocab = 0;
  // Mixtures of experts; 0: there are none.
  int64_t experts = 0;        ///< scores of a router
  int64_t shared_scores = 0;  ///< 1 where a shared expert may have a gate
  int64_t expert_hidden = 0;  ///< experts of a token * hidden features of one
  int64_t expert_parts = 0;   ///< experts of a token, with the shared one, * embedding
};

/// Of products' inputs: how many features a row has at the most, over all that are prepared at
/// once.
int64_t widest_input(const ActivationSizes& sizes);

/// Bytes of the buffers after reserve(rows, logit_rows); the largest number if that does not fit.
uint64_t buffer_bytes(const ActivationSizes& sizes, int64_t rows, int64_t logit_rows);

class Activations {
 public:
  Activations(Backend& backend, const ActivationSizes& sizes) : backend_(&backend), sizes_(sizes) {}

  /// Grows the buffers to hold steps of this size; never shrinks them. Throws std::bad_alloc.
  void reserve(int64_t max_rows, int64_t max_logit_rows);
  int64_t max_rows() const { return max_rows_; }

  // Each holds up to max_rows rows.
  Buffer x;                              ///< [rows, embedding]: the residual stream
  Buffer delta;                          ///< [rows, embedding]: what a block adds to x
  Buffer q;                              ///< [rows, queries]
  Buffer k, v;                           ///< [rows, keys]
  Buffer attended;                       ///< [rows, queries]
  Buffer gate, up;                       ///< [rows, feed_forward]
  Buffer expert_scores;                  ///< [rows, experts]
  Buffer shared_score;                   ///< [rows, 1]
  Buffer expert_gate, expert_up;         ///< [rows, expert_hidden]
  Buffer expert_parts;                   ///< [rows, expert_parts]
  std::vector<LinearTask> router_tasks;  ///< a list that steps make anew
  /// Of the last step, the vectors that were asked for: a part of `delta`.
  Tensor embedded;
  // These hold up to max_logit_rows rows.
  Buffer last;    ///< [logit rows, embedding]
  Buffer logits;  ///< [logit rows, vocab]

 private:
  Backend* backend_;
  ActivationSizes sizes_;
  int64_t max_rows_ = 0;
  int64_t max_logit_rows_ = 0;
};

/// The first `cols` features of each row: buffers are as wide as the widest block of a model.
inline Tensor first_cols(Tensor x, int64_t cols) {
  HEADRACE_CHECK_LE(cols, x.cols);
  x.cols = cols;
  return x;
}

}  // namespace headrace
