// config.json of any content, through every architecture's translation: a config, or an error of
// one line. The first byte chooses the architecture.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/hf_config_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto all = headrace::architectures();
  const std::string fault = headrace::test::config_fault(
      *all[data[0] % all.size()], {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (fault.find('\n') != std::string::npos) std::abort();
  return 0;
}
