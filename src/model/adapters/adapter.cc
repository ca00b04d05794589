// See adapter.h.
#include "model/adapters/adapter.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/content_hash.h"
#include "base/saturating.h"

namespace headrace {
namespace {

void add_tensor(ContentHash& hash, const CheckpointTensor& tensor) {
  hash.add_text(format_traits(tensor.format).name);
  for (const int64_t extent : tensor.shape) hash.add_number(static_cast<uint64_t>(extent));
  hash.add(tensor.data);
}

}  // namespace

const AdapterPair* Adapter::find(std::string_view weight) const {
  const auto found = std::ranges::lower_bound(pairs, weight, {}, &AdapterPair::weight);
  return found != pairs.end() && found->weight == weight ? &*found : nullptr;
}

uint64_t Adapter::num_bytes() const {
  uint64_t sum = 0;
  for (const AdapterPair& pair : pairs) sum += pair.a.num_bytes() + pair.b.num_bytes();
  return sum;
}

int64_t Adapter::num_parameters() const {
  int64_t sum = 0;
  for (const AdapterPair& pair : pairs) sum += pair.a.num_elements() + pair.b.num_elements();
  return sum;
}

uint64_t Adapter::packed_bytes() const {
  constexpr int64_t kPanel = 16;
  const auto bytes_of = [](const CheckpointTensor& tensor) {
    const auto rows = static_cast<uint64_t>((tensor.shape[0] + kPanel - 1) / kPanel * kPanel);
    return saturating_mul<uint64_t>(rows, static_cast<uint64_t>(tensor.shape[1]) * sizeof(float));
  };
  uint64_t sum = 0;
  for (const AdapterPair& pair : pairs) {
    sum = saturating_add(sum, saturating_add(bytes_of(pair.a), bytes_of(pair.b)));
  }
  return sum;
}

std::string Adapter::digest() const {
  ContentHash hash;
  hash.add_text("headrace adapter 1");
  hash.add_number(keeps_rope_halves ? 1 : 0);
  for (const AdapterPair& pair : pairs) {
    hash.add_text(pair.weight);
    uint32_t bits;
    std::memcpy(&bits, &pair.scale, sizeof(bits));
    hash.add_number(bits);
    add_tensor(hash, pair.a);
    add_tensor(hash, pair.b);
  }
  return to_hex(hash.digest());
}

}  // namespace headrace
