// See activations.h.
#include "model/blocks/activations.h"

#include <algorithm>

namespace headrace {

void Activations::reserve(int64_t max_rows, int64_t max_logit_rows) {
  if (max_rows > max_rows_) {
    for (Buffer* buffer : {&x, &normed, &delta}) {
      *buffer = backend_->allocate(DType::f32, max_rows, sizes_.embedding);
    }
    for (Buffer* buffer : {&q, &attended}) {
      *buffer = backend_->allocate(DType::f32, max_rows, sizes_.queries);
    }
    for (Buffer* buffer : {&k, &v}) {
      *buffer = backend_->allocate(DType::f32, max_rows, sizes_.keys);
    }
    for (Buffer* buffer : {&gate, &up}) {
      *buffer = backend_->allocate(DType::f32, max_rows, sizes_.feed_forward);
    }
    max_rows_ = max_rows;
  }
  if (max_logit_rows > max_logit_rows_) {
    last = backend_->allocate(DType::f32, max_logit_rows, sizes_.embedding);
    logits = backend_->allocate(DType::f32, max_logit_rows, sizes_.vocab);
    max_logit_rows_ = max_logit_rows;
  }
}

}  // namespace headrace
