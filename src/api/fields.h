// Reads the fields of one JSON object: type and range of each, and which of the object's keys
// nobody asked for. Must not know what a field means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "headrace/result.h"

namespace headrace::api {

/// Unknown fields of one object that warnings name, and notes of it besides.
inline constexpr size_t kMaxNamedFields = 64;
/// Warnings of one request, all its objects together.
inline constexpr size_t kMaxWarnings = 192;

/// One more, as long as there are fewer than kMaxWarnings; the last one says that more are left
/// out.
void add_warning(std::vector<std::string>& warnings, std::string warning);

/// "null", "true", "5", "\"abc\"", "an array", "an object": what an error says was found.
std::string found_text(const Json& value);

/// Error (invalid_argument) at the field `path`: "expected EXPECTED, found FOUND".
Error wrong_value(std::string path, std::string_view expected, const Json& found);
/// The same where there is nothing at all.
Error missing_value(std::string path, std::string_view expected);

/// The whole number that `value` is, also written as 5.0 or 5e0; nothing for others and for what
/// does not fit.
std::optional<int64_t> whole_number(const Json& value);

/// Reads leave their target alone where the field is absent or null, and return whether they set
/// it. The first fault stays: reads after it do nothing, and status() tells it.
class Fields {
 public:
  /// `object` must be one, and outlive this. `path` is "" or where the object is ("messages[3]").
  explicit Fields(const Json& object, std::string path = "");

  /// Null where the field is absent or null, or a fault was found. `name` must live on.
  const Json* find(std::string_view name);

  bool boolean(std::string_view name, bool& to);
  /// `expected` says what is allowed: "a number from 0 to 1".
  bool number(std::string_view name, float& to, double least, double most,
              std::string_view expected);
  template <class Int>
  bool integer(std::string_view name, Int& to, int64_t least, int64_t most) {
    int64_t value = 0;
    if (!whole(name, value, least, most)) return false;
    to = static_cast<Int>(value);
    return true;
  }
  /// At most `max_bytes` long.
  bool text(std::string_view name, std::string& to, size_t max_bytes);

  /// Names that are known but mean nothing here: they are not among unknown().
  void skip(std::string_view name) { find(name); }

  /// A sentence for unknown(), about a field that is known and left out; of more than
  /// kMaxNamedFields the number alone is kept.
  void note(std::string_view name, std::string_view why);

  void fail(Error error);
  /// wrong_value() of this object's field.
  void fail(std::string_view name, std::string_view expected, const Json& found);
  /// Error (unsupported) at the field.
  void refuse(std::string_view name, std::string message, std::string hint = "");
  bool has_failed() const { return error_.has_value(); }
  Result<void> status() const;

  std::string path_of(std::string_view name) const;
  const Json& object() const { return object_; }

  /// The notes, and a sentence for each key that no read asked for, with the known one nearest to
  /// it; at most `max` of these, the last then says how many more there are. Keys whose value is
  /// null are left out.
  std::vector<std::string> unknown(size_t max = kMaxNamedFields) const;

 private:
  bool whole(std::string_view name, int64_t& to, int64_t least, int64_t most);

  const Json& object_;
  std::string path_;
  std::vector<std::string_view> known_;
  std::vector<std::string> notes_;
  size_t num_more_notes_ = 0;
  std::optional<Error> error_;
};

}  // namespace headrace::api
