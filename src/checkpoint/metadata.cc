// Typed access to metadata; see metadata.h.
#include "checkpoint/metadata.h"

#include <iterator>
#include <type_traits>

#include "base/checked.h"
#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

constexpr std::string_view kTypeNames[] = {"a bool",
                                           "an integer",
                                           "an integer",
                                           "a float",
                                           "a string",
                                           "an array of bools",
                                           "an array of integers",
                                           "an array of integers",
                                           "an array of floats",
                                           "an array of strings"};
static_assert(std::size(kTypeNames) == std::variant_size_v<MetaValue>);

Error wrong_type(std::string_view key, std::string_view expected, const MetaValue& found) {
  return Error{
      ErrorCode::corrupt_data,
      "expected " + std::string(expected) + ", found " + std::string(kTypeNames[found.index()]),
      "key " + quote_name(key), ""};
}

Error too_large(std::string_view key, uint64_t value) {
  return Error{ErrorCode::out_of_range,
               "expected an integer below 2^63, found " + std::to_string(value),
               "key " + quote_name(key), ""};
}

/// The value as a T, the only type that will do.
template <class T>
Result<std::optional<T>> get_exact(const MetaValue* value, std::string_view key,
                                   std::string_view expected) {
  if (value == nullptr) return std::optional<T>();
  if (const T* found = std::get_if<T>(value)) return std::optional<T>(*found);
  return wrong_type(key, expected, *value);
}

}  // namespace

std::string Metadata::place_of(std::string_view key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? std::string(key) : found->second;
}

const MetaValue* Metadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Result<std::optional<std::string_view>> Metadata::get_string(std::string_view key) const {
  return get_exact<std::string_view>(find(key), key, "a string");
}

Result<std::optional<bool>> Metadata::get_bool(std::string_view key) const {
  return get_exact<bool>(find(key), key, "a bool");
}

Result<std::optional<int64_t>> Metadata::get_int(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value != nullptr && std::holds_alternative<uint64_t>(*value)) {
    const auto fits = checked_cast<int64_t>(std::get<uint64_t>(*value));
    if (!fits) return too_large(key, std::get<uint64_t>(*value));
    return std::optional<int64_t>(*fits);
  }
  return get_exact<int64_t>(value, key, "an integer");
}

Result<std::optional<double>> Metadata::get_float(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value != nullptr) {
    if (const auto* number = std::get_if<int64_t>(value)) {
      return std::optional<double>(static_cast<double>(*number));
    }
    if (const auto* number = std::get_if<uint64_t>(value)) {
      return std::optional<double>(static_cast<double>(*number));
    }
  }
  return get_exact<double>(value, key, "a number");
}

Result<std::optional<std::span<const std::string_view>>> Metadata::get_strings(
    std::string_view key) const {
  using Strings = std::span<const std::string_view>;
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<Strings>();
  if (const auto* found = std::get_if<std::vector<std::string_view>>(value)) {
    return std::optional<Strings>(*found);
  }
  return wrong_type(key, "an array of strings", *value);
}

Result<std::optional<std::vector<int64_t>>> Metadata::get_ints(std::string_view key) const {
  using Ints = std::vector<int64_t>;
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<Ints>();
  if (const auto* found = std::get_if<Ints>(value)) return std::optional<Ints>(*found);
  if (const auto* found = std::get_if<std::vector<bool>>(value)) {
    return std::optional<Ints>(Ints(found->begin(), found->end()));
  }
  if (const auto* found = std::get_if<std::vector<uint64_t>>(value)) {
    Ints numbers;
    numbers.reserve(found->size());
    for (const uint64_t number : *found) {
      const auto fits = checked_cast<int64_t>(number);
      if (!fits) return too_large(key, number);
      numbers.push_back(*fits);
    }
    return std::optional<Ints>(std::move(numbers));
  }
  return wrong_type(key, "an array of integers", *value);
}

Result<std::optional<std::vector<double>>> Metadata::get_floats(std::string_view key) const {
  using Floats = std::vector<double>;
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<Floats>();
  if (const auto* found = std::get_if<Floats>(value)) return std::optional<Floats>(*found);
  if (const auto* found = std::get_if<std::vector<int64_t>>(value)) {
    return std::optional<Floats>(Floats(found->begin(), found->end()));
  }
  if (const auto* found = std::get_if<std::vector<uint64_t>>(value)) {
    return std::optional<Floats>(Floats(found->begin(), found->end()));
  }
  return wrong_type(key, "an array of numbers", *value);
}

}  // namespace headrace
