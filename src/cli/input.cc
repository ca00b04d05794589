// See input.h.
#include "cli/input.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_depth.h"
#include "base/os/input_stream.h"

namespace headrace::cli {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr int kMaxJsonDepth = 64;

Error bad_input(std::string message, const std::string& where) {
  return {ErrorCode::invalid_argument, std::move(message), where, ""};
}

Result<std::string> read_all(InputStream stream) {
  std::string text;
  std::string part(64 * 1024, '\0');
  for (;;) {
    HEADRACE_ASSIGN(const size_t count, stream.read(part));
    if (count == 0) return text;
    text.append(part, 0, count);
    if (text.size() > kMaxTextBytes) {
      return Error{ErrorCode::resource_exhausted, "the text is longer than 1 GiB", stream.name(),
                   "give a shorter one"};
    }
  }
}

Result<TokenId> checked_id(int64_t id, const std::string& where) {
  if (id >= 0 && id <= std::numeric_limits<TokenId>::max()) return static_cast<TokenId>(id);
  return bad_input("id " + std::to_string(id) + " is not in any vocabulary", where);
}

Result<std::vector<TokenId>> ids_of_json(const nlohmann::ordered_json& json,
                                         const std::string& where) {
  const nlohmann::ordered_json* array = &json;
  if (json.is_object()) {
    for (const char* key : {"ids", "token_ids"}) {
      if (const auto found = json.find(key); found != json.end()) array = &*found;
    }
  }
  if (!array->is_array()) return bad_input("expected a JSON array of token ids", where);
  std::vector<TokenId> ids;
  ids.reserve(array->size());
  for (const auto& element : *array) {
    const auto* value = element.get_ptr<const nlohmann::ordered_json::number_integer_t*>();
    if (value == nullptr) {
      return bad_input("element " + std::to_string(ids.size()) + " of the array is no token id",
                       where);
    }
    // Read as signed, the largest ones would be shown as negative.
    if (element.is_number_unsigned() && element.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return bad_input("id " + element.dump() + " is not in any vocabulary", where);
    }
    HEADRACE_ASSIGN(const TokenId id, checked_id(*value, where));
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_all(InputStream::standard_input());
  HEADRACE_ASSIGN(InputStream stream, InputStream::open(path));
  return read_all(std::move(stream));
}

Result<nlohmann::ordered_json> parse_json(std::string_view text, const std::string& where) {
  if (const int depth = json_depth(text); depth > kMaxJsonDepth) {
    return bad_input("the JSON is nested " + std::to_string(depth) + " deep, at most " +
                         std::to_string(kMaxJsonDepth) + " is allowed",
                     where);
  }
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    return bad_input("no valid JSON at byte " + std::to_string(error.byte), where);
  }
}

Result<std::vector<TokenId>> parse_ids(std::string_view text, const std::string& where) {
  constexpr std::string_view kSeparators = " \t\r\n,";
  const size_t begin = text.find_first_not_of(kSeparators);
  if (begin != std::string_view::npos && (text[begin] == '[' || text[begin] == '{')) {
    HEADRACE_ASSIGN(const auto json, parse_json(text, where));
    return ids_of_json(json, where);
  }
  std::vector<TokenId> ids;
  for (size_t at = begin; at < text.size();) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    const auto stop = static_cast<size_t>(end - text.data());
    const bool ends_well =
        stop == text.size() || kSeparators.find(text[stop]) != std::string_view::npos;
    if (error != std::errc() || !ends_well) {
      return bad_input("expected token ids, found something else at byte " + std::to_string(at),
                       where);
    }
    HEADRACE_ASSIGN(const TokenId id, checked_id(value, where));
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, stop);
  }
  return ids;
}

Result<void> check_ids(std::span<const TokenId> ids, int64_t vocab_size, const std::string& where) {
  for (const TokenId id : ids) {
    if (id < vocab_size) continue;
    return bad_input("id " + std::to_string(id) + " is not in the vocabulary of " +
                         std::to_string(vocab_size) + " tokens",
                     where);
  }
  return {};
}

}  // namespace headrace::cli
