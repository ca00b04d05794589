// Filters on numbers, and those that read numbers from text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/number_format.h"
#include "text/chat_template/text_ops.h"

namespace headrace::jinja {

namespace {

/// `text` without white space at its ends and without '_' between digits; nothing if a '_' stands
/// elsewhere.
std::optional<std::string> number_body(const Text& text) {
  const Span span = stripped(text, Side::both);
  const auto view = text.view().substr(span.begin, span.end - span.begin);
  std::string out;
  for (size_t i = 0; i < view.size(); ++i) {
    if (view[i] != '_') {
      out.push_back(view[i]);
      continue;
    }
    const auto alnum = [](char c) { return static_cast<signed char>(c) > 0 && is_alnum(c); };
    if (i == 0 || i + 1 == view.size() || !alnum(view[i - 1]) || !alnum(view[i + 1])) return {};
  }
  return out;
}

/// int(text, base); nothing where Python raises ValueError.
std::optional<int64_t> parse_int(const Text& text, int64_t base) {
  const auto body = number_body(text);
  if (!body || (base != 0 && (base < 2 || base > 36))) return {};
  std::string_view digits = *body;
  bool negative = false;
  if (digits.starts_with('-') || digits.starts_with('+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (digits.size() > 2 && digits[0] == '0') {
    const char mark = static_cast<char>(digits[1] | 32);
    const int64_t marked = mark == 'x' ? 16 : (mark == 'o' ? 8 : (mark == 'b' ? 2 : 0));
    if (marked != 0 && (base == marked || base == 0)) {
      digits.remove_prefix(2);
      base = marked;
    }
  }
  if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos) {
      return {};
    }
    base = 10;
  }
  if (digits.empty() || digits[0] == '-') return {};
  uint64_t value = 0;
  const auto done =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (done.ptr != digits.data() + digits.size()) return {};
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (done.ec != std::errc() || value > kMax + (negative ? 1 : 0)) {
    fail("int: the number does not fit 64 bits");
  }
  return static_cast<int64_t>(negative ? uint64_t{0} - value : value);
}

/// float(text); nothing where Python raises ValueError.
std::optional<double> parse_float(const Text& text) {
  const auto body = number_body(text);
  if (!body) return {};
  std::string_view digits = *body;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '-' || digits[0] == '+' ||
      digits.find('(') != std::string_view::npos) {
    return {};
  }
  const auto value = read_real(digits);
  if (!value) return {};
  return negative ? -*value : *value;
}

int64_t truncated(double value) {
  const double whole = std::trunc(value);
  if (!(std::abs(whole) < 9.2e18)) fail("int: the number does not fit 64 bits");
  return static_cast<int64_t>(whole);
}

Value filter_int(Interpreter&, const Value& v, Args& args) {
  const Bound bound("int", args, {"default", "base"});
  const Value otherwise = bound.has(0) ? bound[0] : Value::integer(0);
  if (v.is_undefined()) fail_undefined(v);
  if (v.is_int()) return Value::integer(v.as_int()).with_taint(v.tainted());
  if (v.is(Kind::real)) {
    if (std::isnan(v.as_real())) return otherwise;
    return Value::integer(truncated(v.as_real())).with_taint(v.tainted());
  }
  if (!v.is_string()) return otherwise;
  const bool tainted = !v.text().all_trusted();
  if (const auto whole = parse_int(v.text(), bound.integer(1, 10))) {
    return Value::integer(*whole).with_taint(tainted);
  }
  const auto real = parse_float(v.text());
  if (!real || !std::isfinite(*real)) return otherwise;
  return Value::integer(truncated(*real)).with_taint(tainted);
}

Value filter_float(Interpreter&, const Value& v, Args& args) {
  const Bound bound("float", args, {"default"});
  const Value otherwise = bound.has(0) ? bound[0] : Value::real(0.0);
  if (v.is_undefined()) fail_undefined(v);
  if (v.is_number()) return Value::real(v.as_real()).with_taint(v.tainted());
  if (!v.is_string()) return otherwise;
  const auto real = parse_float(v.text());
  return real ? Value::real(*real).with_taint(!v.text().all_trusted()) : otherwise;
}

Value filter_abs(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("abs", args, {});
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_number()) fail("bad operand type for abs(): '" + std::string(type_name(v)) + "'");
  if (!v.is_int()) return Value::real(std::abs(v.as_real())).with_taint(v.tainted());
  return v.as_int() < 0 ? in.negate(v, '-') : in.negate(v, '+');
}

/// Python's round(): to the nearest, ties to even, judged on the number's exact decimal value.
double rounded(double value, int64_t digits) {
  constexpr int64_t kMostDigits = 340;
  if (!std::isfinite(value) || digits > kMostDigits) return value;
  if (digits < -kMostDigits) return std::copysign(0.0, value);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  FormatSpec spec;
  spec.type = 'f';
  spec.precision = digits;
  const auto text = format_real(value, spec);
  double out = 0;
  std::from_chars(text.digits.data(), text.digits.data() + text.digits.size(), out);
  return text.sign.empty() ? out : -out;
}

int64_t rounded_int(int64_t value, int64_t digits) {
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) {
    if (unit > std::numeric_limits<int64_t>::max() / 10) return 0;
    unit *= 10;
  }
  if (unit == 1) return value;
  int64_t quotient = value / unit;
  const int64_t rest = value % unit;
  const int64_t magnitude = rest < 0 ? -rest : rest;
  const int64_t half = unit / 2;
  if (magnitude > half || (magnitude == half && quotient % 2 != 0)) quotient += value < 0 ? -1 : 1;
  int64_t out = 0;
  if (__builtin_mul_overflow(quotient, unit, &out)) fail("round: integer does not fit 64 bits");
  return out;
}

Value filter_round(Interpreter&, const Value& v, Args& args) {
  const Bound bound("round", args, {"precision", "method"});
  const int64_t digits = bound.integer(0, 0);
  const auto method = bound.has(1) ? need_string(bound[1], "round").view() : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("round: method must be common, ceil or floor");
  }
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_number()) fail("round: expected a number, found '" + std::string(type_name(v)) + "'");
  if (method == "common") {
    Value out = v.is_int() ? Value::integer(rounded_int(v.as_int(), std::max<int64_t>(digits, -20)))
                           : Value::real(rounded(v.as_real(), digits));
    return std::move(out).with_taint(v.tainted());
  }
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = v.as_real() * unit;
  if (!std::isfinite(scaled) || unit == 0.0) fail("round: the number is out of range");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit)
      .with_taint(v.tainted());
}

}  // namespace

const std::vector<NamedBuiltin>& number_filters() {
  static const std::vector<NamedBuiltin> kTable = {
      {"int", filter_int}, {"float", filter_float}, {"abs", filter_abs}, {"round", filter_round}};
  return kTable;
}

}  // namespace headrace::jinja
