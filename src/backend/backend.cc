// Unfused defaults of Backend's richer operations.
#include "backend/backend.h"

namespace headrace {

void Backend::linear_group(const Tensor& x, std::span<const LinearTask> tasks) {
  for (const LinearTask& task : tasks) linear(x, task);
}

}  // namespace headrace
