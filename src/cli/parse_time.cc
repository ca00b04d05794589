// See parse_time.h.
#include "cli/parse_time.h"

#include <chrono>
#include <optional>
#include <string>

#include "base/read_number.h"

namespace headrace::cli {
namespace {

/// The number that is the whole of `text`.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  return read_number(text, value) == std::errc() ? std::optional(value) : std::nullopt;
}

/// `digits` digits at `at`, or nothing.
std::optional<int> field(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// "HH:MM" or "HH:MM:SS" as seconds of the day.
std::optional<int64_t> time_of_day(std::string_view text) {
  const bool with_seconds = text.size() == 8;
  if (!with_seconds && text.size() != 5) return std::nullopt;
  if (text[2] != ':' || (with_seconds && text[5] != ':')) return std::nullopt;
  const auto hour = field(text, 0, 2);
  const auto minute = field(text, 3, 2);
  const auto second = with_seconds ? field(text, 6, 2) : std::optional<int>(0);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  return *hour * 3600 + *minute * 60 + *second;
}

std::optional<int64_t> date_and_time(std::string_view text) {
  if (text.size() < 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = field(text, 0, 4);
  const auto month = field(text, 5, 2);
  const auto day = field(text, 8, 2);
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  int64_t seconds = std::chrono::sys_days(date).time_since_epoch().count() * int64_t{86400};
  if (text.size() == 10) return seconds;
  const auto time =
      text[10] == 'T' || text[10] == ' ' ? time_of_day(text.substr(11)) : std::nullopt;
  if (!time) return std::nullopt;
  return seconds + *time;
}

}  // namespace

Result<int64_t> parse_time(std::string_view text) {
  if (const auto seconds = whole_number(text)) return *seconds;
  if (const auto seconds = date_and_time(text)) return *seconds;
  return Error{ErrorCode::invalid_argument,
               "expected seconds since 1970 or a time like 2026-01-31T12:30:00, got '" +
                   std::string(text) + "'",
               "", ""};
}

}  // namespace headrace::cli
