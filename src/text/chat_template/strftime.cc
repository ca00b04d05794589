#include "text/chat_template/strftime.h"

#include <algorithm>
#include <chrono>

namespace headrace::jinja {

namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

struct Moment {
  int64_t unix_seconds = 0;
  int year = 1970, month = 1, day = 1;
  int hour = 0, minute = 0, second = 0;
  int weekday = 0;   ///< 0 is Sunday
  int year_day = 0;  ///< from 0
};

Moment moment_of(int64_t unix_seconds) {
  using std::chrono::days;
  constexpr int64_t kFirst = -62135596800, kLast = 253402300799;  // years 1 and 9999
  Moment out;
  out.unix_seconds = std::clamp(unix_seconds, kFirst, kLast);
  int64_t day = out.unix_seconds / 86400;
  int64_t second = out.unix_seconds % 86400;
  if (second < 0) {
    second += 86400;
    --day;
  }
  const std::chrono::sys_days date{days{day}};
  const std::chrono::year_month_day ymd{date};
  out.year = static_cast<int>(ymd.year());
  out.month = static_cast<int>(static_cast<unsigned>(ymd.month()));
  out.day = static_cast<int>(static_cast<unsigned>(ymd.day()));
  out.weekday = static_cast<int>(std::chrono::weekday{date}.c_encoding());
  const std::chrono::sys_days new_year{ymd.year() / std::chrono::January / 1};
  out.year_day = static_cast<int>((date - new_year).count());
  out.hour = static_cast<int>(second / 3600);
  out.minute = static_cast<int>(second / 60 % 60);
  out.second = static_cast<int>(second % 60);
  return out;
}

std::string padded(int64_t value, int width, char fill = '0') {
  std::string digits = std::to_string(value);
  if (static_cast<int>(digits.size()) < width) {
    digits.insert(0, static_cast<size_t>(width) - digits.size(), fill);
  }
  return digits;
}

/// ISO 8601: the week that holds the year's first Thursday is week 1.
struct IsoWeek {
  int year = 0, week = 0;
};

IsoWeek iso_week(const Moment& m) {
  const int from_monday = (m.weekday + 6) % 7;
  const auto is_leap = [](int y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; };
  const int week = (m.year_day - from_monday + 10) / 7;
  const auto weeks_in = [&](int y, int new_year_weekday) {
    return new_year_weekday == 4 || (new_year_weekday == 3 && is_leap(y)) ? 53 : 52;
  };
  const int new_year = ((m.weekday - m.year_day) % 7 + 7) % 7;
  if (week < 1) {
    const int before = ((new_year - (is_leap(m.year - 1) ? 366 : 365)) % 7 + 7) % 7;
    return {m.year - 1, weeks_in(m.year - 1, before)};
  }
  if (week > weeks_in(m.year, new_year)) return {m.year + 1, 1};
  return {m.year, week};
}

std::string field(const Moment& m, char code, char flag);

std::string joined(const Moment& m, std::string_view codes) {
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == '%')
      out += field(m, codes[++i], 0);
    else
      out.push_back(codes[i]);
  }
  return out;
}

std::string field(const Moment& m, char code, char flag) {
  const auto number = [&](int64_t value, int width, char fill = '0') {
    if (flag == '-') return std::to_string(value);
    if (flag == '_') fill = ' ';
    if (flag == '0') fill = '0';
    return padded(value, width, fill);
  };
  const int hour12 = m.hour % 12 == 0 ? 12 : m.hour % 12;
  switch (code) {
    case 'a':
      return std::string(kDays[m.weekday].substr(0, 3));
    case 'A':
      return std::string(kDays[m.weekday]);
    case 'b':
    case 'h':
      return std::string(kMonths[m.month - 1].substr(0, 3));
    case 'B':
      return std::string(kMonths[m.month - 1]);
    case 'c':
      return joined(m, "%a %b %e %H:%M:%S ") + std::to_string(m.year);
    case 'C':
      return number(m.year / 100, 2);
    case 'd':
      return number(m.day, 2);
    case 'D':
    case 'x':
      return joined(m, "%m/%d/%y");
    case 'e':
      return number(m.day, 2, ' ');
    case 'f':
      return "000000";
    case 'F':
      return std::to_string(m.year) + joined(m, "-%m-%d");
    case 'g':
      return number(iso_week(m).year % 100, 2);
    case 'G':
      return std::to_string(iso_week(m).year);
    case 'H':
      return number(m.hour, 2);
    case 'I':
      return number(hour12, 2);
    case 'j':
      return number(m.year_day + 1, 3);
    case 'k':
      return number(m.hour, 2, ' ');
    case 'l':
      return number(hour12, 2, ' ');
    case 'm':
      return number(m.month, 2);
    case 'M':
      return number(m.minute, 2);
    case 'n':
      return "\n";
    case 'p':
      return m.hour < 12 ? "AM" : "PM";
    case 'P':
      return m.hour < 12 ? "am" : "pm";
    case 'r':
      return joined(m, "%I:%M:%S %p");
    case 'R':
      return joined(m, "%H:%M");
    case 's':
      return std::to_string(m.unix_seconds);
    case 'S':
      return number(m.second, 2);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return joined(m, "%H:%M:%S");
    case 'u':
      return std::to_string(m.weekday == 0 ? 7 : m.weekday);
    case 'U':
      return number((m.year_day + 7 - m.weekday) / 7, 2);
    case 'V':
      return number(iso_week(m).week, 2);
    case 'w':
      return std::to_string(m.weekday);
    case 'W':
      return number((m.year_day + 7 - (m.weekday + 6) % 7) / 7, 2);
    case 'y':
      return number(m.year % 100, 2);
    case 'Y':
      return std::to_string(m.year);
    case 'z':
    case 'Z':
      return "";  // a naive time has no zone
    case '%':
      return "%";
    default:
      return std::string("%") + (flag != 0 ? std::string(1, flag) : "") + code;
  }
}

}  // namespace

std::string format_time(int64_t unix_seconds, std::string_view format) {
  const Moment m = moment_of(unix_seconds);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      out.push_back(format[i]);
      continue;
    }
    char flag = 0;
    if ((format[i + 1] == '-' || format[i + 1] == '_' || format[i + 1] == '0') &&
        i + 2 < format.size()) {
      flag = format[++i];
    }
    out += field(m, format[++i], flag);
  }
  return out;
}

}  // namespace headrace::jinja
