// How a step deep inside of an encoding gives up. Owns the exception; it never leaves the library:
// BaseTokenizer and the readers turn it into a Result.
#pragma once

#include <utility>

#include "headrace/result.h"

namespace headrace::text {

struct EncodeFault {
  Error error;
};

}  // namespace headrace::text
