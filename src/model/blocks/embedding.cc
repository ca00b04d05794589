// See embedding.h.
#include "model/blocks/embedding.h"

namespace headrace {

Tensor OutputHead::apply(Backend& backend, const Tensor& x, const StepInput& step,
                         Activations& a) const {
  a.embedded = a.delta.view(static_cast<int64_t>(step.embedding_rows.size()));
  if (!step.embedding_rows.empty()) {
    backend.gather_rows(x, step.embedding_rows, a.embedded);
    apply_norm(backend, norm, a.embedded);
  }
  const auto num_rows = static_cast<int64_t>(step.logit_rows.size());
  const Tensor last = a.last.view(num_rows);
  const Tensor logits = a.logits.view(num_rows);
  if (num_rows == 0) return logits;
  backend.gather_rows(x, step.logit_rows, last);
  LinearTask task = own.task(logits, {}, scale);
  if (task.weight == nullptr) task.weight = tied;
  // A soft cap may make different logits equal, so that which is the largest depends on all.
  if (step.num_top > 0 && soft_cap == 0) {
    backend.linear_top(normed_input(norm, last), task, step.num_top);
  } else {
    backend.linear(normed_input(norm, last), task);
  }
  if (soft_cap > 0) backend.soft_cap(logits, soft_cap);
  return logits;
}

}  // namespace headrace
