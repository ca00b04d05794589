// See input.h.
#include "cli/input.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_depth.h"

namespace headrace::cli {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr int kMaxJsonDepth = 64;

Error wrong(std::string message, const std::string& where) {
  return {ErrorCode::invalid_argument, std::move(message), where, ""};
}

Result<std::string> read_stream(std::istream& in, const std::string& where) {
  std::string text;
  std::string part(64 * 1024, '\0');
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0) {
    text.append(part, 0, static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxTextBytes) {
      return Error{ErrorCode::resource_exhausted, "the text is longer than 1 GiB", where, ""};
    }
  }
  if (in.bad()) return Error{ErrorCode::io_error, "cannot be read", where, ""};
  return text;
}

Result<TokenId> checked_id(int64_t id, int64_t vocab_size, const std::string& where) {
  if (id < 0 || id >= vocab_size) {
    return wrong("id " + std::to_string(id) + " is not in the vocabulary of " +
                     std::to_string(vocab_size) + " tokens",
                 where);
  }
  return static_cast<TokenId>(id);
}

Result<std::vector<TokenId>> ids_of_json(const nlohmann::ordered_json& json, int64_t vocab_size,
                                         const std::string& where) {
  const nlohmann::ordered_json* array = &json;
  if (json.is_object()) {
    for (const char* key : {"ids", "token_ids"}) {
      if (const auto found = json.find(key); found != json.end()) array = &*found;
    }
  }
  if (!array->is_array()) return wrong("expected a JSON array of token ids", where);
  std::vector<TokenId> ids;
  ids.reserve(array->size());
  for (const auto& element : *array) {
    const auto* value = element.get_ptr<const nlohmann::ordered_json::number_integer_t*>();
    if (value == nullptr) {
      return wrong("element " + std::to_string(ids.size()) + " of the array is no token id", where);
    }
    HEADRACE_ASSIGN(const TokenId id, checked_id(*value, vocab_size, where));
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_stream(std::cin, "standard input");
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return Error{ErrorCode::not_found, "no such file", path, ""};
  }
  if (std::filesystem::is_directory(status)) {
    return Error{ErrorCode::io_error, "a directory, not a file", path, ""};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::io_error, "cannot be opened for reading", path, ""};
  return read_stream(file, path);
}

Result<nlohmann::ordered_json> parse_json(std::string_view text, const std::string& where) {
  if (const int depth = json_depth(text); depth > kMaxJsonDepth) {
    return wrong("the JSON is nested " + std::to_string(depth) + " deep, at most " +
                     std::to_string(kMaxJsonDepth) + " is allowed",
                 where);
  }
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    return wrong("no valid JSON at byte " + std::to_string(error.byte), where);
  }
}

Result<std::vector<TokenId>> parse_ids(std::string_view text, int64_t vocab_size,
                                       const std::string& where) {
  constexpr std::string_view kSeparators = " \t\r\n,";
  const size_t begin = text.find_first_not_of(kSeparators);
  if (begin != std::string_view::npos && (text[begin] == '[' || text[begin] == '{')) {
    HEADRACE_ASSIGN(const auto json, parse_json(text, where));
    return ids_of_json(json, vocab_size, where);
  }
  std::vector<TokenId> ids;
  for (size_t at = begin; at < text.size();) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    const auto stop = static_cast<size_t>(end - text.data());
    const bool ends_well =
        stop == text.size() || kSeparators.find(text[stop]) != std::string_view::npos;
    if (error != std::errc() || !ends_well) {
      return wrong("expected token ids, found something else at byte " + std::to_string(at), where);
    }
    HEADRACE_ASSIGN(const TokenId id, checked_id(value, vocab_size, where));
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, stop);
  }
  return ids;
}

}  // namespace headrace::cli
