// How the vectors of a request are made and told. Must not know bodies or models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pooling.h"

namespace headrace::api {

struct EmbeddingOptions {
  std::optional<Pooling> pooling{};  ///< none: the model's own
  bool normalizes = true;            ///< to length 1
  int64_t dimensions = 0;            ///< the first of them are kept; 0: all
  bool as_base64 = false;            ///< in answers of JSON: floats of 32 bits, little-endian
};

struct RankingOptions {
  int64_t most_results = 0;            ///< 0: all
  bool tells_raw_scores = false;       ///< the head's own numbers, not their logistic function
  std::vector<std::string> documents;  ///< told again with the results; empty: they are not
};

}  // namespace headrace::api
