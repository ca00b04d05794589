// How the vectors of a text's tokens become one vector of the text. Part of the public C++ API.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

enum class Pooling : uint8_t {
  mean,  ///< of all tokens, those that the model puts around a text included
  cls,   ///< the first token's
  last,  ///< the last token's
};

/// "mean", "cls", "last".
constexpr std::string_view pooling_name(Pooling pooling) {
  switch (pooling) {
    case Pooling::mean:
      return "mean";
    case Pooling::cls:
      return "cls";
    case Pooling::last:
      return "last";
  }
  return "unknown";
}

constexpr std::optional<Pooling> pooling_named(std::string_view name) {
  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last}) {
    if (pooling_name(pooling) == name) return pooling;
  }
  return std::nullopt;
}

}  // namespace headrace
