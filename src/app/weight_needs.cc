// See weight_needs.h.
#include "app/weight_needs.h"

#include <algorithm>

#include "base/saturating.h"

namespace headrace {
namespace {

/// As numbers of 32 bits.
uint64_t float_bytes(const CheckpointTensor& tensor) {
  uint64_t bytes = sizeof(float);
  for (const int64_t extent : tensor.shape) {
    bytes = saturating_mul(bytes, static_cast<uint64_t>(extent));
  }
  return bytes;
}

/// As packed: about what is in the file, or becomes of it.
uint64_t packed_bytes(const CheckpointTensor& tensor, const Quantization* quantize) {
  if (quantize == nullptr) return tensor.num_bytes();
  return bytes_in_format(tensor, planned_format(*quantize, tensor));
}

}  // namespace

void set_weight_needs(MemoryNeeds& needs, const Checkpoint& checkpoint,
                      const WeightPlacement& placement) {
  needs.weight_bytes = 0;
  needs.file_bytes = 0;
  uint64_t widest = 0;  // bytes of a matrix' row as floats
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (placement.pack || (tensor.is_made && tensor.shape.size() >= 2)) {
      const uint64_t bytes =
          placement.as_floats ? float_bytes(tensor) : packed_bytes(tensor, placement.quantize);
      needs.weight_bytes = saturating_add(needs.weight_bytes, bytes);
    } else if (tensor.shape.size() < 2) {
      needs.weight_bytes = saturating_add(needs.weight_bytes, float_bytes(tensor));
    } else {
      needs.file_bytes = saturating_add<uint64_t>(needs.file_bytes, tensor.num_bytes());
      widest = std::max(widest, saturating_mul<uint64_t>(static_cast<uint64_t>(tensor.shape.back()),
                                                         sizeof(float)));
    }
  }
  // Each thread makes two panels of 16 rows at a time, of floats at the most, from a row of floats.
  constexpr uint64_t kRowsAThread = 2 * 16 + 1;
  needs.scratch_bytes = saturating_mul(saturating_mul(widest, kRowsAThread),
                                       static_cast<uint64_t>(placement.num_threads));
}

}  // namespace headrace
