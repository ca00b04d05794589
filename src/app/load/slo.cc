// See slo.h.
#include "app/load/slo.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "app/load/expected_error.h"

namespace headrace {
namespace {

struct Bound {
  std::string_view name;
  std::optional<double> LoadSlo::*value;
};
constexpr std::array<Bound, 4> kBounds = {{{"ttft", &LoadSlo::ttft_ms},
                                           {"itl", &LoadSlo::itl_ms},
                                           {"tpot", &LoadSlo::tpot_ms},
                                           {"e2e", &LoadSlo::e2e_ms}}};

}  // namespace

Result<double> parse_milliseconds(std::string_view text) {
  constexpr std::string_view kExpected = "a time such as 500ms, 1.5s or 2m";
  constexpr double kShortest = 1e-3;
  constexpr double kLongest = 1e9;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc()) return expected_error(text, kExpected);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  if (unit == "s") {
    value *= 1e3;
  } else if (unit == "m") {
    value *= 60e3;
  } else if (unit != "ms") {
    return expected_error(text, kExpected);
  }
  if (!(value >= kShortest && value <= kLongest)) return expected_error(text, kExpected);
  return value;
}

Result<LoadSlo> parse_slo(std::string_view text) {
  LoadSlo slo;
  for (;;) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto colon = part.find(':');
    const auto bound = std::find_if(kBounds.begin(), kBounds.end(), [&](const Bound& known) {
      return known.name == part.substr(0, colon);
    });
    if (colon == std::string_view::npos || bound == kBounds.end()) {
      return expected_error(part, "bounds such as ttft:500ms,itl:50ms,tpot:40ms,e2e:5s");
    }
    auto& value = slo.*(bound->value);
    if (value) return expected_error(part, "each bound once");
    HEADRACE_ASSIGN(value, parse_milliseconds(part.substr(colon + 1)));
    if (part.size() == text.size()) return slo;
    text.remove_prefix(part.size() + 1);
  }
}

std::string LoadSlo::text() const {
  std::string out;
  for (const Bound& bound : kBounds) {
    const auto& value = this->*(bound.value);
    if (!value) continue;
    char digits[32];
    const auto end =
        std::to_chars(digits, digits + sizeof(digits), *value, std::chars_format::fixed).ptr;
    out +=
        (out.empty() ? "" : ",") + std::string(bound.name) + ":" + std::string(digits, end) + "ms";
  }
  return out;
}

}  // namespace headrace
