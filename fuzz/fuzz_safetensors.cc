// Safetensors files of any content: tensors that lie in the file, or an error of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/safetensors_file.h"
#include "checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  HeapBudget budget;
  const auto tensors = read_safetensors(file, budget);
  if (tensors.ok()) {
    for (const StoredTensor& tensor : *tensors) {
      const size_t begin = static_cast<size_t>(tensor.data.data() - file.data());
      if (!tensor.data.empty() && begin + tensor.data.size() > size) std::abort();
    }
  } else if (tensors.error().to_string().find('\n') != std::string::npos) {
    std::abort();
  }
  (void)read_shard_index({reinterpret_cast<const char*>(data), size});
  return 0;
}
