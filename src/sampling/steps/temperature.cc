#include "sampling/steps/steps.h"

namespace headrace {

void apply_temperature(float temperature, Candidates& candidates) {
  candidates.set_temperature(temperature);
}

}  // namespace headrace
