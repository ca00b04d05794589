// See mlp.h.
#include "model/blocks/mlp.h"

#include <array>

namespace headrace {

void GatedMlp::apply(Backend& backend, const Tensor& x, Activations& a, const Tensor& out) const {
  const Tensor gated = a.gate.view(x.rows);
  const Tensor upped = a.up.view(x.rows);
  const std::array tasks = {gate.task(gated), up.task(upped)};
  backend.linear_group(x, tasks);
  backend.gated_activation(gated, upped, activation, gated);
  backend.linear(gated, down.task(out));
}

}  // namespace headrace
