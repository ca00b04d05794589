// What a request must keep to count as served well. Pure arithmetic.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// "500ms", "1.5s", "2m" in milliseconds, at least 0.001. Errors (invalid_argument).
Result<double> parse_milliseconds(std::string_view text);

/// Bounds in milliseconds; none: anything will do.
struct LoadSlo {
  std::optional<double> ttft_ms;  ///< to the first token
  std::optional<double> itl_ms;   ///< every token after the one before it
  std::optional<double> tpot_ms;  ///< the same on average
  std::optional<double> e2e_ms;   ///< to the end

  bool is_empty() const { return !ttft_ms && !itl_ms && !tpot_ms && !e2e_ms; }
  /// As parse_slo() reads it.
  std::string text() const;
};

/// "ttft:500ms,itl:50ms,tpot:40ms,e2e:5s", any of them, each once. Errors (invalid_argument).
Result<LoadSlo> parse_slo(std::string_view text);

}  // namespace headrace
