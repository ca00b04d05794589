// A PEFT adapter of any content: adapter_config.json's text, a zero byte,
// adapter_model.safetensors. The first byte chooses the architecture. An adapter, or an error of
// one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "model/adapters/open_adapter.h"
#include "model/registry.h"

namespace headrace {
namespace {

void read(const Architecture& architecture, std::string_view text) {
  const size_t end = text.find('\0');
  const std::string_view config = text.substr(0, end);
  const std::string_view weights = end == text.npos ? std::string_view() : text.substr(end + 1);
  // At an address fit for all numbers, as a mapped file is.
  const std::string copy(weights);
  AdapterCopies copies;
  const auto adapter =
      read_peft_adapter(config, std::as_bytes(std::span(copy)), architecture.gguf_name, copies);
  if (adapter.ok()) {
    (void)adapter->digest();
    return;
  }
  if (adapter.error().to_string().find('\n') != std::string::npos) std::abort();
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto all = headrace::architectures();
  headrace::read(*all[data[0] % all.size()], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
