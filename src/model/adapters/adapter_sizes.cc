// See adapter_sizes.h.
#include "model/adapters/adapter_sizes.h"

#include "backend/low_rank.h"
#include "base/saturating.h"

namespace headrace {
namespace {

uint64_t float_rows_bytes(int64_t rows, uint64_t width) {
  return saturating_mul(saturating_mul<uint64_t>(width, sizeof(float)),
                        static_cast<uint64_t>(rows));
}

}  // namespace

AdapterSizes adapter_sizes_of(std::span<const Adapter> adapters) {
  AdapterSizes sizes;
  for (const Adapter& adapter : adapters) {
    for (const AdapterPair& pair : adapter.pairs) {
      sizes.expect(pair.rank(), pair.rows(), pair.weight == "output");
    }
  }
  return sizes;
}

uint64_t buffer_bytes(const AdapterSizes& sizes, int64_t rows, int64_t logit_rows) {
  if (sizes.largest_rank == 0) return 0;
  const auto rank = static_cast<uint64_t>(sizes.largest_rank);
  const uint64_t low = saturating_mul(static_cast<uint64_t>(kMostAdapted), rank);
  const uint64_t of_rows =
      float_rows_bytes(rows, saturating_add(low, static_cast<uint64_t>(sizes.most_outputs)));
  if (sizes.most_logits == 0) return of_rows;
  const uint64_t width = saturating_add(rank, static_cast<uint64_t>(sizes.most_logits));
  return saturating_add(of_rows, float_rows_bytes(logit_rows, width));
}

}  // namespace headrace
