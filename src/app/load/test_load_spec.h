// For the tests of this folder.
#pragma once

#include "app/load/workload.h"

namespace headrace::test {

inline LoadSpec load_spec(const char* input, const char* output) {
  LoadSpec spec;
  spec.input = *LoadLength::parse(input);
  spec.output = *LoadLength::parse(output);
  spec.seed = 5;
  return spec;
}

}  // namespace headrace::test
