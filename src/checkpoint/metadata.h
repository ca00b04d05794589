// What a model file says about itself: typed key-value pairs. Owns values; strings may point into
// the mapped file, which the owner of the Metadata keeps alive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/result.h"

namespace headrace {

/// One value. Integers are widened, floats are doubles; arrays are homogeneous. An array of arrays
/// is kept as its text form only (no known key uses one).
using MetaValue = std::variant<bool, int64_t, uint64_t, double, std::string_view, std::vector<bool>,
                               std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>,
                               std::vector<std::string_view>>;

/// The typed view of a file's metadata. Getters return nothing for a missing key, and an Error
/// that names key, expected and found type for one of the wrong type.
class Metadata {
 public:
  void set(std::string key, MetaValue value) {
    values_.insert_or_assign(std::move(key), std::move(value));
  }
  /// Where a key that is no key of the file comes from, for messages.
  void set_origin(std::string key, std::string origin) {
    origins_.insert_or_assign(std::move(key), std::move(origin));
  }
  /// The origin of a key, or the key.
  std::string place_of(std::string_view key) const;
  const MetaValue* find(std::string_view key) const;
  const std::map<std::string, MetaValue, std::less<>>& values() const { return values_; }

  Result<std::optional<std::string_view>> get_string(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  /// Any integer that fits; a bool is not an integer.
  Result<std::optional<int64_t>> get_int(std::string_view key) const;
  /// Floats and integers.
  Result<std::optional<double>> get_float(std::string_view key) const;
  Result<std::optional<std::span<const std::string_view>>> get_strings(std::string_view key) const;
  /// Copies: integer arrays of any width, bool arrays as 0/1.
  Result<std::optional<std::vector<int64_t>>> get_ints(std::string_view key) const;
  Result<std::optional<std::vector<double>>> get_floats(std::string_view key) const;

 private:
  std::map<std::string, MetaValue, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> origins_;
};

}  // namespace headrace
