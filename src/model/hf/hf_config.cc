// See hf_config.h.
#include "model/hf/hf_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/json_object.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr size_t kLongestConfig = size_t{16} << 20;

std::string found_text(const json& value) {
  constexpr size_t kShown = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

std::optional<int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  // Some configs say 131072.0.
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < 0x1p53 && number == std::floor(number)) {
      return static_cast<int64_t>(number);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<HfConfig> HfConfig::parse(std::string_view text, std::string file) {
  HEADRACE_ASSIGN(json parsed, parse_json_object(text, file, kLongestConfig));
  HfConfig config;
  config.json_ = std::make_shared<const json>(std::move(parsed));
  config.error_ = std::make_shared<std::optional<Error>>();
  config.prefix_ = std::move(file) + ": ";
  return config;
}

std::shared_ptr<const json> HfConfig::find(std::string_view key) const {
  for (const auto& from : {json_, fallback_}) {
    if (from == nullptr || !from->is_object()) continue;
    const auto found = from->find(key);
    // The part keeps the whole.
    if (found != from->end() && !found->is_null()) return {from, &*found};
  }
  return nullptr;
}

bool HfConfig::has(std::string_view key) const {
  return find(key) != nullptr;
}

bool HfConfig::names(std::string_view key) const {
  for (const auto* from : {json_.get(), fallback_.get()}) {
    if (from != nullptr && from->contains(key)) return true;
  }
  return false;
}

bool HfConfig::is_object(std::string_view key) const {
  const auto value = find(key);
  return value != nullptr && value->is_object();
}

bool HfConfig::is_text(std::string_view key) const {
  const auto value = find(key);
  return value != nullptr && value->is_string();
}

HfConfig HfConfig::object(std::string_view key) const {
  auto value = find(key);
  HfConfig out;
  if (value != nullptr && !value->is_object()) {
    fail(key, "expected an object, found " + found_text(*value));
    value = nullptr;
  }
  out.json_ = value != nullptr ? value : std::make_shared<const json>(json::object());
  out.error_ = error_;
  out.prefix_ = place(key) + ".";
  return out;
}

std::vector<std::string> HfConfig::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : json_->items()) out.push_back(key);
  return out;
}

HfConfig HfConfig::over(const HfConfig& other) const {
  HfConfig out = *this;
  out.fallback_ = other.json_;
  return out;
}

std::string HfConfig::place(std::string_view key) const {
  return prefix_ + std::string(key);
}

void HfConfig::fail(std::string_view key, std::string message, ErrorCode code) const {
  if (!*error_) *error_ = Error{code, std::move(message), place(key), ""};
}

const std::optional<Error>& HfConfig::error() const {
  return *error_;
}

std::optional<int64_t> HfConfig::integer(std::string_view key) const {
  const auto value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = as_integer(*value);
  if (!number) fail(key, "expected an integer, found " + found_text(*value));
  return number;
}

std::optional<double> HfConfig::number(std::string_view key) const {
  const auto value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  fail(key, "expected a number, found " + found_text(*value));
  return std::nullopt;
}

std::optional<bool> HfConfig::boolean(std::string_view key) const {
  const auto value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, "expected true or false, found " + found_text(*value));
  return std::nullopt;
}

std::optional<std::string> HfConfig::text(std::string_view key) const {
  const auto value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  fail(key, "expected a text, found " + found_text(*value));
  return std::nullopt;
}

std::vector<int64_t> HfConfig::integers(std::string_view key) const {
  std::vector<int64_t> out;
  const auto value = find(key);
  if (value == nullptr) return out;
  if (value->is_array()) {
    for (const json& item : *value) {
      const auto number =
          item.is_boolean() ? std::optional<int64_t>(item.get<bool>() ? 1 : 0) : as_integer(item);
      if (!number) break;
      out.push_back(*number);
    }
    if (out.size() == value->size()) return out;
  }
  fail(key, "expected a list of integers, found " + found_text(*value));
  return {};
}

std::vector<double> HfConfig::numbers(std::string_view key) const {
  std::vector<double> out;
  const auto value = find(key);
  if (value == nullptr) return out;
  if (value->is_array()) {
    for (const json& item : *value) {
      if (!item.is_number()) break;
      out.push_back(item.get<double>());
    }
    if (out.size() == value->size()) return out;
  }
  fail(key, "expected a list of numbers, found " + found_text(*value));
  return {};
}

std::vector<std::string> HfConfig::texts(std::string_view key) const {
  std::vector<std::string> out;
  const auto value = find(key);
  if (value == nullptr) return out;
  if (value->is_array()) {
    for (const json& item : *value) {
      if (!item.is_string()) break;
      out.push_back(item.get<std::string>());
    }
    if (out.size() == value->size()) return out;
  }
  fail(key, "expected a list of texts, found " + found_text(*value));
  return {};
}

}  // namespace headrace
