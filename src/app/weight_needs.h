// What the weights of a checkpoint will take of memory, before any is read.
#pragma once

#include <cstdint>

#include "app/memory_plan.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/quantization.h"

namespace headrace {

/// How weights are to be kept.
struct WeightPlacement {
  bool pack = true;                        ///< else matrices stay in the file
  const Quantization* quantize = nullptr;  ///< what matrices are brought to; null: as they are
  bool as_floats = false;  ///< packed weights take 4 bytes an element: the reference path
  int num_threads = 1;
};

/// Sets weight_bytes, file_bytes and scratch_bytes. Packed weights take about what they have in the
/// file, or in the formats that they are quantised to. What no file holds as it is (is_made) is
/// packed anyhow.
void set_weight_needs(MemoryNeeds& needs, const Checkpoint& checkpoint,
                      const WeightPlacement& placement);

}  // namespace headrace
