// See decode_meter.h.
#include "engine/scheduler/decode_meter.h"

#include <algorithm>
#include <limits>

namespace headrace {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

bool is_decoding(const Batch& batch) {
  return !batch.is_empty() && batch.num_rows() == static_cast<int64_t>(batch.sequences.size()) &&
         std::all_of(batch.sequences.begin(), batch.sequences.end(), [](const BatchSequence& part) {
           return part.sample >= 0 && part.num_scores == 0;
         });
}

}  // namespace

void DecodeWindow::add(int64_t now_ns, const DecodeWork& work) {
  const int64_t second = now_ns / kNsPerSecond;
  Slot& slot = slots_[static_cast<size_t>(second) % slots_.size()];
  if (slot.second != second) slot = {second, {}};
  slot.work += work;
}

DecodeWork DecodeWindow::recent(int64_t now_ns) const {
  const int64_t second = now_ns / kNsPerSecond;
  DecodeWork sum;
  for (const Slot& slot : slots_) {
    if (slot.second >= 0 && slot.second > second - kSeconds) sum += slot.work;
  }
  return sum;
}

DecodeMeter::DecodeMeter(std::span<const CacheGeometry> geometries,
                         std::span<const uint64_t> block_bytes) {
  for (size_t i = 0; i < std::min(geometries.size(), block_bytes.size()); ++i) {
    const CacheGeometry& geometry = geometries[i];
    groups_.push_back({.most_keys = geometry.window > 0 ? geometry.window - 1
                                                        : std::numeric_limits<int64_t>::max(),
                       .block_bytes = block_bytes[i],
                       .block_tokens = std::max<int64_t>(geometry.block_tokens, 1)});
  }
}

int64_t DecodeMeter::kv_bytes_of(const Batch& batch) const {
  uint64_t bytes = 0;
  for (const Group& group : groups_) {
    uint64_t keys = 0;
    for (const BatchSequence& part : batch.sequences) {
      keys += static_cast<uint64_t>(std::min(part.first_position, group.most_keys));
    }
    bytes += keys * group.block_bytes / static_cast<uint64_t>(group.block_tokens);
  }
  return static_cast<int64_t>(bytes);
}

void DecodeMeter::note(const Batch& batch, int64_t begin_ns, int64_t end_ns) {
  if (!is_decoding(batch)) return;
  const bool is_top = batch.num_top > 0 && batch.samples.size() == 1;
  const DecodeWork work{.num_steps = 1,
                        .num_top_steps = is_top ? 1 : 0,
                        .ns = end_ns - begin_ns,
                        .kv_bytes = kv_bytes_of(batch)};
  total_ += work;
  window_.add(end_ns, work);
}

}  // namespace headrace
