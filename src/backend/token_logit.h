// A token and its logit, as backends report them. A plain struct: instruction-set files see it too.
#pragma once

#include <cstdint>

namespace headrace {

struct TokenLogit {
  int32_t id = 0;
  float logit = 0;
};

}  // namespace headrace
