// See length.h.
#include "app/load/length.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "app/load/expected_error.h"
#include "base/read_number.h"

namespace headrace {
namespace {

/// Draws farther from the mean are repeated.
constexpr double kMaxDeviations = 3;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  return read_number(text, value) == std::errc() ? std::optional(value) : std::nullopt;
}

/// None at all, or one that makes a difference.
bool is_deviation(double value) {
  return value == 0 || (value >= 1e-3 && value <= static_cast<double>(kMaxLoadLength));
}

bool is_length(double value) {
  return value >= 1 && value <= static_cast<double>(kMaxLoadLength);
}

std::string plain(double value) {
  char out[32];
  const auto end = std::to_chars(out, out + sizeof(out), value, std::chars_format::fixed).ptr;
  return {out, end};
}

}  // namespace

LoadLength::LoadLength(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {
  // A lognormal's mean m and deviation s: sigma^2 = ln(1 + s^2 / m^2), mu = ln m - sigma^2 / 2.
  const double variance = std::log1p(b * b / (a * a));
  sigma_ = std::sqrt(variance);
  mu_ = std::log(a) - 0.5 * variance;
}

Result<LoadLength> LoadLength::parse(std::string_view text) {
  constexpr std::string_view kForms =
      "a length of 1 to 16777216 tokens such as 250, 16..512, log:16..512, normal:256:64 or "
      "lognormal:256:128";
  const auto dots = text.find("..");
  if (dots != std::string_view::npos) {
    constexpr std::string_view kLog = "log:";
    const bool is_log = text.starts_with(kLog);
    const size_t begin = is_log ? kLog.size() : 0;
    const auto least = whole(text.substr(begin, dots - begin));
    const auto most = whole(text.substr(dots + 2));
    if (!least || !most || *least < 1 || *most > kMaxLoadLength)
      return expected_error(text, kForms);
    if (*least > *most) return expected_error(text, "the smaller length first, as in 16..512");
    return LoadLength(is_log ? Kind::log_uniform : Kind::uniform, static_cast<double>(*least),
                      static_cast<double>(*most));
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto length = whole(text);
    if (!length || *length < 1 || *length > kMaxLoadLength) return expected_error(text, kForms);
    return LoadLength(Kind::fixed, static_cast<double>(*length), 0);
  }
  const std::string_view name = text.substr(0, colon);
  const auto second = text.find(':', colon + 1);
  if ((name != "normal" && name != "lognormal") || second == std::string_view::npos) {
    return expected_error(text, kForms);
  }
  const auto mean = number(text.substr(colon + 1, second - colon - 1));
  const auto deviation = number(text.substr(second + 1));
  if (!mean || !deviation || !is_length(*mean) || !is_deviation(*deviation)) {
    return expected_error(text, kForms);
  }
  return LoadLength(name == "normal" ? Kind::normal : Kind::lognormal, *mean, *deviation);
}

double LoadLength::value_at(double deviations) const {
  if (kind_ == Kind::lognormal) return std::exp(mu_ + sigma_ * deviations);
  return a_ + b_ * deviations;
}

int64_t LoadLength::draw(LoadRandom& random) const {
  if (kind_ == Kind::fixed) return static_cast<int64_t>(a_);
  if (kind_ == Kind::uniform) {
    const auto least = static_cast<int64_t>(a_);
    const auto count = static_cast<uint64_t>(static_cast<int64_t>(b_) - least + 1);
    return least + static_cast<int64_t>(random.below(count));
  }
  if (kind_ == Kind::log_uniform) {
    // The logarithm is as likely anywhere from that of the least to that of the most plus one.
    const double value = a_ * std::pow((b_ + 1) / a_, random.unit());
    return static_cast<int64_t>(std::clamp(std::floor(value), a_, b_));
  }
  double deviations = random.gauss();
  while (std::abs(deviations) > kMaxDeviations) deviations = random.gauss();
  const double value = std::round(value_at(deviations));
  return static_cast<int64_t>(std::clamp(value, 1.0, static_cast<double>(kMaxLoadLength)));
}

int64_t LoadLength::longest() const {
  if (kind_ == Kind::fixed) return static_cast<int64_t>(a_);
  if (kind_ == Kind::uniform || kind_ == Kind::log_uniform) return static_cast<int64_t>(b_);
  const double value = std::round(value_at(kMaxDeviations));
  return static_cast<int64_t>(std::clamp(value, 1.0, static_cast<double>(kMaxLoadLength)));
}

double LoadLength::mean() const {
  if (kind_ == Kind::log_uniform && b_ > a_) return (b_ - a_) / std::log(b_ / a_);
  return kind_ == Kind::uniform ? 0.5 * (a_ + b_) : a_;
}

std::string LoadLength::text() const {
  switch (kind_) {
    case Kind::fixed:
      return plain(a_);
    case Kind::uniform:
      return plain(a_) + ".." + plain(b_);
    case Kind::log_uniform:
      return "log:" + plain(a_) + ".." + plain(b_);
    case Kind::normal:
      return "normal:" + plain(a_) + ":" + plain(b_);
    case Kind::lognormal:
      return "lognormal:" + plain(a_) + ":" + plain(b_);
  }
  return "";
}

}  // namespace headrace
