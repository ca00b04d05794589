// The engine's simulation, with its choices made by the input: what arrives when, what fails, who
// is cancelled, how large everything is.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine/simulation/simulation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::SimulationOptions options;
  options.num_requests = 40;
  options.choices = {data, size};
  const auto result = headrace::simulate(options);
  if (!result.fault.empty()) {
    std::fprintf(stderr, "%s\n", result.fault.c_str());
    std::abort();
  }
  return 0;
}
