// See gguf_split.h.
#include "checkpoint/gguf_split.h"

#include <algorithm>
#include <string_view>

namespace headrace {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";
constexpr std::string_view kExtension = ".gguf";

std::string padded(int64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

/// Takes `expected` off the end of `text`.
bool drop_end(std::string_view& text, std::string_view expected) {
  if (!text.ends_with(expected)) return false;
  text.remove_suffix(expected.size());
  return true;
}

/// Takes five digits off the end of `text`.
std::optional<int64_t> drop_number(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  int64_t number = 0;
  for (const char digit : text.substr(text.size() - kDigits)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  text.remove_suffix(kDigits);
  return number;
}

}  // namespace

std::string SplitName::path(int64_t other_part) const {
  return prefix + "-" + padded(other_part) + std::string(kOf) + padded(num_parts) +
         std::string(kExtension);
}

std::optional<SplitName> parse_split_name(const std::string& path) {
  std::string_view rest = path;
  if (!drop_end(rest, kExtension)) return std::nullopt;
  const auto num_parts = drop_number(rest);
  if (!num_parts || !drop_end(rest, kOf)) return std::nullopt;
  const auto part = drop_number(rest);
  if (!part || !drop_end(rest, "-")) return std::nullopt;
  if (*part < 1 || *part > *num_parts) return std::nullopt;
  return SplitName{std::string(rest), *part, *num_parts};
}

Result<std::optional<SplitKeys>> read_split_keys(const Metadata& metadata) {
  HEADRACE_ASSIGN(const auto count, metadata.get_int("split.count"));
  if (!count || *count <= 1) return std::optional<SplitKeys>();
  HEADRACE_ASSIGN(const auto number, metadata.get_int("split.no"));
  HEADRACE_ASSIGN(const auto num_tensors, metadata.get_int("split.tensors.count"));
  // The key is 16 bits wide, and part numbers have five digits.
  if (*count > 65535) {
    return Error{ErrorCode::corrupt_data,
                 "expected at most 65535 parts, found " + std::to_string(*count),
                 "key 'split.count'", ""};
  }
  if (!number || *number < 0 || *number >= *count) {
    return Error{ErrorCode::corrupt_data,
                 "expected a part number from 0 to " + std::to_string(*count - 1) + ", found " +
                     (number ? std::to_string(*number) : "none"),
                 "key 'split.no'", ""};
  }
  return std::optional<SplitKeys>(SplitKeys{*number + 1, *count, num_tensors});
}

}  // namespace headrace
