// See json_body.h.
#include "api/json_body.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/in_quotes.h"
#include "text/unicode.h"

namespace headrace::api {
namespace {

/// The byte at which `bytes` stop being UTF-8, or its size.
size_t valid_utf8_bytes(std::string_view bytes) {
  const char* const end = bytes.data() + bytes.size();
  const char* at = bytes.data();
  while (at < end) {
    const text::Decoded next = text::decode_utf8(at, end);
    if (!next.valid) break;
    at += next.size;
  }
  return static_cast<size_t>(at - bytes.data());
}

/// Builds a value from what the parser tells. nlohmann's own builder has no limits, and looks for
/// each key of an ordered object among all before it.
class Builder {
 public:
  Builder(std::string_view bytes, const RequestLimits& limits, int num_outer_levels, Json& out)
      : bytes_(bytes), limits_(limits), num_outer_levels_(num_outer_levels), root_(out) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool start_object(size_t /*size*/) { return open(Json::object()); }
  bool start_array(size_t /*size*/) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool end_object() {
    const auto& object = levels_.back().container->get_ref<const Json::object_t&>();
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (const auto& [name, value] : object) keys.push_back(name);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return close();
    levels_.back().key = *twice;
    return fail("the key is given twice");
  }
  bool key(std::string& name) {
    Level& level = levels_.back();
    level.key = std::move(name);
    if (level.container->size() < limits_.max_object_keys) return true;
    levels_.back().key.clear();
    return fail("an object may have at most " + std::to_string(limits_.max_object_keys) + " keys");
  }

  template <class Exception>
  bool parse_error(size_t position, const std::string& last_token, const Exception& fault) {
    const size_t at = position > 0 ? position - 1 : 0;
    if (const size_t valid = valid_utf8_bytes(bytes_); valid < bytes_.size()) {
      return fail("not UTF-8 at byte " + std::to_string(valid));
    }
    constexpr int kNumberOverflow = 406;
    if (fault.id == kNumberOverflow) {
      return fail("the number " + in_quotes(last_token, 40) + " is too large");
    }
    // No field is at fault: all that follows is missing.
    if (at >= bytes_.size() || position == 0) return fail_at("", "the JSON ends too early");
    for (const std::string_view word : {"NaN", "Infinity"}) {
      if (bytes_.substr(at).starts_with(word)) {
        return fail("JSON has no " + std::string(word) + ", found one at byte " +
                    std::to_string(at));
      }
    }
    return fail("not valid JSON at byte " + std::to_string(at) + ", at " +
                in_quotes(last_token, 40));
  }

  /// After a parse that ended early.
  Error error() {
    if (error_.message.empty()) return {ErrorCode::internal, "the JSON could not be read", "", ""};
    return std::move(error_);
  }

 private:
  struct Level {
    Json* container;  // in the one before it, which grows again only after this is closed
    std::string key;  // in an object: the last one
  };

  bool fail(std::string message) { return fail_at(path(levels_.size()), std::move(message)); }

  bool fail_at(std::string where, std::string message) {
    if (where.empty()) where = kBody;
    error_ = {ErrorCode::invalid_argument, std::move(message), std::move(where), ""};
    return false;
  }

  /// Of what is being read, down to so many levels.
  std::string path(size_t num_levels) const {
    constexpr size_t kMaxBytes = 120;
    std::string out;
    for (size_t i = 0; i < std::min(num_levels, levels_.size()); ++i) {
      const Level& level = levels_[i];
      if (level.container->is_array()) {
        // The last element is the next level, or else the next one is being read.
        const size_t inside = &level == &levels_.back() ? 0 : 1;
        out += "[" + std::to_string(level.container->size() - inside) + "]";
      } else if (!level.key.empty()) {
        out += (out.empty() ? "" : ".") + shortened(level.key, 40);
      }
      if (out.size() > kMaxBytes) return out + "...";
    }
    return out;
  }

  template <class Value>
  Json* put(Value&& value) {
    if (++num_values_ > limits_.max_values) {
      fail("at most " + std::to_string(limits_.max_values) + " values are allowed in one body");
      return nullptr;
    }
    if (levels_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) {
      auto& array = level.container->get_ref<Json::array_t&>();
      return &array.emplace_back(std::forward<Value>(value));
    }
    auto& object = level.container->get_ref<Json::object_t&>();
    // Not the map's own emplace, which looks for the key first.
    auto& entries = static_cast<Json::object_t::Container&>(object);
    return &entries.emplace_back(level.key, std::forward<Value>(value)).second;
  }

  template <class Value>
  bool add(Value&& value) {
    return put(std::forward<Value>(value)) != nullptr;
  }

  bool open(Json container) {
    if (static_cast<int>(levels_.size()) == limits_.max_depth + num_outer_levels_) {
      // The whole path would say the same name, or [0], again and again.
      return fail_at(path(static_cast<size_t>(num_outer_levels_) + 1),
                     "nested deeper than the " + std::to_string(limits_.max_depth) +
                         " levels that are allowed");
    }
    Json* const made = put(std::move(container));
    if (made == nullptr) return false;
    levels_.push_back({made, ""});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view bytes_;
  const RequestLimits& limits_;
  const int num_outer_levels_;
  Json& root_;
  std::vector<Level> levels_;
  size_t num_values_ = 0;
  Error error_;
};

}  // namespace

Result<void> parse_body(std::string_view bytes, const RequestLimits& limits, Json& out,
                        int num_outer_levels) {
  out = nullptr;
  if (bytes.size() > limits.max_body_bytes) {
    return Error{ErrorCode::out_of_range,
                 "the body has " + std::to_string(bytes.size()) + " bytes, at most " +
                     std::to_string(limits.max_body_bytes) + " are allowed",
                 std::string(kBody), ""};
  }
  Builder builder(bytes, limits, num_outer_levels, out);
  if (Json::sax_parse(bytes.begin(), bytes.end(), &builder)) return {};
  return builder.error();
}

}  // namespace headrace::api
