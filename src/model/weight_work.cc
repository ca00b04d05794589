// Bytes of a step of several rows, where each row reads some of the experts.
#include <cmath>

#include "model/model.h"

namespace headrace {

double WeightWork::step_layer_bytes(int64_t rows) const {
  const auto bytes = static_cast<double>(layer_bytes);
  if (expert_bytes == 0 || rows <= 1) return bytes;
  // An expert is read unless all rows leave it out.
  const double read = 1 - std::pow(1 - active_share, static_cast<double>(rows));
  return bytes + (read - active_share) * static_cast<double>(expert_bytes);
}

}  // namespace headrace
