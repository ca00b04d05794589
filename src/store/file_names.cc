// See file_names.h.
#include "store/file_names.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxPartBytes = 255;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// What is wrong with the name; empty: nothing.
std::string fault_of_name(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.size() > kMaxPathBytes) return "is longer than 1024 bytes";
  if (path.front() == '/') return "is an absolute path";
  if (std::any_of(path.begin(), path.end(), is_control)) return "has a control character";
  if (path.find('\\') != std::string_view::npos) return "has a backslash";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return "has a part '" + std::string(part) + "'";
    if (part.size() > kMaxPartBytes) return "has a part longer than 255 bytes";
    begin = end + 1;
  }
  return "";
}

}  // namespace

Result<void> check_file_name(std::string_view path) {
  const std::string fault = fault_of_name(path);
  if (fault.empty()) return {};
  return Error{ErrorCode::corrupt_data, "a file's name " + fault + ", so nothing is written",
               std::string(path.substr(0, kMaxPathBytes)),
               "such a name is no accident: do not use "
               "what it comes from"};
}

bool is_plain_word(std::string_view word) {
  if (word.empty() || word.size() > 128 || word.front() == '.') return false;
  return std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace headrace
