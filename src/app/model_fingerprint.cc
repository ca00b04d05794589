// See model_fingerprint.h.
#include "app/model_fingerprint.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/content_hash.h"

namespace headrace {
namespace {

constexpr size_t kStretchBytes = 4096;
constexpr size_t kStretches = 8;

bool counts(std::string_view key) {
  if (key == "general.architecture") return true;
  return !key.starts_with("general.") && !key.starts_with("tokenizer.") &&
         !key.starts_with("split.");
}

void add_scalar(ContentHash& hash, std::string_view text) {
  hash.add_text(text);
}
void add_scalar(ContentHash& hash, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  hash.add_number(bits);
}
template <class T>
requires std::is_integral_v<T>
void add_scalar(ContentHash& hash, T value) {
  hash.add_number(static_cast<uint64_t>(value));
}
template <class T>
void add_scalar(ContentHash& hash, const std::vector<T>& values) {
  hash.add_number(values.size());
  for (const T& value : values) add_scalar(hash, value);
}

void add_bytes(ContentHash& hash, std::span<const std::byte> data) {
  hash.add_number(data.size());
  if (data.size() <= kStretches * kStretchBytes) {
    hash.add(data);
    return;
  }
  const size_t last = data.size() - kStretchBytes;
  for (size_t i = 0; i < kStretches; ++i) {
    hash.add(data.subspan(last * i / (kStretches - 1), kStretchBytes));
  }
}

}  // namespace

std::string model_fingerprint(const Checkpoint& checkpoint) {
  ContentHash hash;
  hash.add_text("headrace model 1");
  for (const auto& [key, value] : checkpoint.metadata().values()) {  // in order of the keys
    if (!counts(key)) continue;
    hash.add_text(key);
    hash.add_number(value.index());
    std::visit([&](const auto& held) { add_scalar(hash, held); }, value);
  }
  std::vector<const CheckpointTensor*> tensors;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, [](const CheckpointTensor* tensor) { return tensor->name; });
  hash.add_number(tensors.size());
  for (const CheckpointTensor* tensor : tensors) {
    hash.add_text(tensor->name);
    hash.add_text(format_traits(tensor->format).name);
    hash.add_number(tensor->shape.size());
    for (const int64_t dim : tensor->shape) hash.add_number(static_cast<uint64_t>(dim));
    add_bytes(hash, tensor->data);
    checkpoint.release(*tensor);  // its pages count as this process's memory
  }
  return to_hex(hash.digest());
}

}  // namespace headrace
