// See parse_bytes.h.
#include "cli/parse_bytes.h"

#include <charconv>
#include <cmath>
#include <string>

#include "cli/terminal_text.h"

namespace headrace::cli {

Result<uint64_t> parse_bytes(std::string_view text) {
  const Error wrong{ErrorCode::invalid_argument,
                    "expected a size like 512M, 2G or 1.5GB, got '" + printable(text, 60) + "'", "",
                    ""};
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return wrong;
  std::string_view unit(stop, static_cast<size_t>(end - stop));
  double scale = 1;
  if (!unit.empty() && unit != "B") {
    static constexpr std::string_view kUnits = "KMGT";
    const char letter = unit.front() == 'k' ? 'K' : unit.front();
    const size_t power = kUnits.find(letter);
    unit.remove_prefix(1);
    const bool decimal = unit == "B";
    if (power == std::string_view::npos || !(decimal || unit.empty() || unit == "iB")) return wrong;
    scale = std::pow(decimal ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = value * scale;
  constexpr double kMost = 1e18;
  if (bytes < 1 || bytes > kMost) return wrong;
  return static_cast<uint64_t>(bytes);
}

}  // namespace headrace::cli
