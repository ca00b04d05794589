// See fields.h.
#include "api/fields.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/in_quotes.h"
#include "base/nearest_word.h"

namespace headrace::api {

void add_warning(std::vector<std::string>& warnings, std::string warning) {
  if (warnings.size() < kMaxWarnings) {
    warnings.push_back(std::move(warning));
  } else if (warnings.size() == kMaxWarnings) {
    warnings.emplace_back("more warnings are left out");
  }
}

std::string found_text(const Json& value) {
  constexpr size_t kMaxBytes = 60;
  switch (value.type()) {
    case Json::value_t::string:
      return in_quotes(value.get_ref<const std::string&>(), kMaxBytes);
    case Json::value_t::array:
      return value.empty() ? "an empty array" : "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return value.dump();
  }
}

Error wrong_value(std::string path, std::string_view expected, const Json& found) {
  return {ErrorCode::invalid_argument,
          "expected " + std::string(expected) + ", found " + found_text(found), std::move(path),
          ""};
}

Error missing_value(std::string path, std::string_view expected) {
  return {ErrorCode::invalid_argument, "expected " + std::string(expected) + ", found nothing",
          std::move(path), ""};
}

std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > uint64_t{std::numeric_limits<int64_t>::max()}) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  constexpr double kExact = 9007199254740992;  // 2^53
  const auto number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) > kExact) return std::nullopt;
  return static_cast<int64_t>(number);
}

namespace {

bool is_past_64_bits(const Json& value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  return !(std::abs(value.get<double>()) < kEnd);
}

}  // namespace

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

const Json* Fields::find(std::string_view name) {
  known_.push_back(name);
  if (error_) return nullptr;
  const auto& entries = object_.get_ref<const Json::object_t&>();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == entries.end() || found->second.is_null() ? nullptr : &found->second;
}

bool Fields::boolean(std::string_view name, bool& to) {
  const Json* const value = find(name);
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    fail(name, "true or false", *value);
    return false;
  }
  to = value->get<bool>();
  return true;
}

bool Fields::number(std::string_view name, float& to, double least, double most,
                    std::string_view expected) {
  const Json* const value = find(name);
  if (value == nullptr) return false;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= least && number <= most)) {
    fail(name, expected, *value);
    return false;
  }
  to = static_cast<float>(number);
  return true;
}

bool Fields::whole(std::string_view name, int64_t& to, int64_t least, int64_t most) {
  const Json* const value = find(name);
  if (value == nullptr) return false;
  const auto number = whole_number(*value);
  if (!number || *number < least || *number > most) {
    // A bound that nobody runs into is only said to whoever did.
    const bool is_past = number ? *number > most : value->is_number() && is_past_64_bits(*value);
    const bool bounded = most < std::numeric_limits<int32_t>::max() || is_past;
    fail(name,
         "a whole number " + (bounded
                                  ? "from " + std::to_string(least) + " to " + std::to_string(most)
                                  : "of at least " + std::to_string(least)),
         *value);
    return false;
  }
  to = *number;
  return true;
}

bool Fields::text(std::string_view name, std::string& to, size_t max_bytes) {
  const Json* const value = find(name);
  if (value == nullptr) return false;
  if (!value->is_string()) {
    fail(name, "a string", *value);
    return false;
  }
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > max_bytes) {
    fail(name, "a string of at most " + std::to_string(max_bytes) + " bytes", *value);
    return false;
  }
  to = text;
  return true;
}

void Fields::note(std::string_view name, std::string_view why) {
  if (notes_.size() == kMaxNamedFields) {
    ++num_more_notes_;
    return;
  }
  notes_.push_back("ignored: " + in_quotes(path_of(name), 120) + " " + std::string(why));
}

void Fields::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void Fields::fail(std::string_view name, std::string_view expected, const Json& found) {
  fail(wrong_value(path_of(name), expected, found));
}

void Fields::refuse(std::string_view name, std::string message, std::string hint) {
  fail({ErrorCode::unsupported, std::move(message), path_of(name), std::move(hint)});
}

Result<void> Fields::status() const {
  if (error_) return *error_;
  return {};
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

std::vector<std::string> Fields::unknown(size_t max) const {
  std::vector<std::string> out = notes_;
  if (num_more_notes_ > 0) {
    out.push_back("ignored: " + std::to_string(num_more_notes_) + " more such values");
  }
  max += out.size();
  size_t num_more = 0;
  std::vector<std::string> candidates;
  for (const auto& [name, value] : object_.get_ref<const Json::object_t&>()) {
    if (value.is_null() || std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    if (out.size() == max) {
      ++num_more;
      continue;
    }
    if (candidates.empty()) candidates.assign(known_.begin(), known_.end());
    const std::string meant = name.size() > 60 ? "" : nearest_word(name, candidates);
    out.push_back("ignored: " + in_quotes(path_of(shortened(name, 60)), 120) +
                  " is not known here" + (meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
  if (num_more > 0) out.push_back("ignored: " + std::to_string(num_more) + " more unknown fields");
  return out;
}

}  // namespace headrace::api
