// For the steps' tests: what edits make of a row.
#pragma once

#include <vector>

#include "sampling/logit_edits.h"

namespace headrace {

inline std::vector<float> edited(std::vector<float> logits, LogitEdits& edits) {
  for (const LogitEdit& edit : edits.current_row()) {
    float& logit = logits[static_cast<size_t>(edit.id)];
    logit = edited_logit(edit, logit);
  }
  return logits;
}

}  // namespace headrace
