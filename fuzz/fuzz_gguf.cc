// Feeds any bytes to the GGUF reader; what opens is read as a loader would read it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/gguf_file.h"
#include "checkpoint/gguf_split.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_values(const headrace::Metadata& metadata) {
  for (const auto& [key, value] : metadata.values()) {
    (void)metadata.get_string(key);
    (void)metadata.get_int(key);
    (void)metadata.get_float(key);
    (void)metadata.get_ints(key);
    (void)metadata.get_floats(key);
    (void)metadata.get_strings(key);
  }
  (void)headrace::read_split_keys(metadata);
}

void read_tensor(const headrace::CheckpointTensor& tensor, std::span<const std::byte> file) {
  const headrace::FormatTraits& traits = headrace::format_traits(tensor.format);
  require(!tensor.name.empty() && !tensor.shape.empty() && tensor.shape.size() <= 4);
  require(tensor.data.data() >= file.data());
  require(tensor.data.data() + tensor.data.size() <= file.data() + file.size());
  uint64_t num_weights = 1;
  for (const int64_t dim : tensor.shape) num_weights *= static_cast<uint64_t>(dim);
  require(tensor.data.size() == num_weights / traits.block_elements * traits.block_bytes);
  std::vector<float> decoded(num_weights);
  traits.decode(tensor.data.data(), decoded.data(), num_weights / traits.block_elements);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of its own: aligned for decoding in place, and of exactly this size for the sanitizer.
  const auto bytes = std::make_unique<std::byte[]>(size);
  if (size != 0) std::memcpy(bytes.get(), data, size);
  const std::span<const std::byte> file(bytes.get(), size);

  headrace::HeapBudget budget;
  const auto parsed = headrace::read_gguf(file, budget);
  if (!parsed.ok()) {
    require(!parsed.error().message.empty());
    require(parsed.error().where.find("byte ") != std::string::npos);
    return 0;
  }
  read_values(parsed->metadata);
  for (const auto& tensor : parsed->tensors) read_tensor(tensor, file);
  return 0;
}
