// See gguf_names.h.
#include "store/gguf_names.h"

#include <algorithm>
#include <vector>

#include "base/read_number.h"
#include "store/file_names.h"

namespace headrace {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "Q4_K_M", "IQ4_XS", "F16", "BF16", "MXFP4", "TQ1_0" and the like, of capitals.
bool is_quantization(std::string_view word) {
  if (word == "F16" || word == "F32" || word == "BF16" || word.starts_with("MXFP4")) return true;
  for (const std::string_view head : {"Q", "IQ", "TQ"}) {
    if (!word.starts_with(head)) continue;
    const std::string_view rest = word.substr(head.size());
    if (rest.size() < 3 || !is_digit(rest[0]) || rest[1] != '_') continue;
    return std::all_of(rest.begin() + 2, rest.end(),
                       [](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z') || c == '_'; });
  }
  return false;
}

std::string last_quantization(std::string_view name) {
  std::string found;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find_first_of("-. ", begin), name.size());
    std::string word;
    for (const char c : name.substr(begin, end - begin)) {
      word += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    // Some names join it with an underscore: "model_q4_k_m".
    for (size_t at = 0; at < word.size() && !is_quantization(word);) {
      const size_t line = word.find('_', at);
      if (line == std::string::npos) break;
      if (is_quantization(std::string_view(word).substr(line + 1))) word = word.substr(line + 1);
      at = line + 1;
    }
    if (is_quantization(word)) found = word;
    begin = end + 1;
  }
  return found;
}

}  // namespace

std::string quantization_of(std::string_view path) {
  const std::string_view file = base_name(path);
  if (std::string found = last_quantization(file); !found.empty()) return found;
  if (file.size() == path.size()) return "";
  return last_quantization(base_name(path.substr(0, path.size() - file.size() - 1)));
}

std::optional<SplitName> split_name_of(std::string_view path) {
  constexpr size_t kNumberDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + kNumberDigits + kOf.size() + kNumberDigits;  // -00001-of-00003
  const std::string_view stem = path.substr(0, path.rfind('.'));
  const std::string_view ending = path.substr(stem.size());
  if (ending != ".gguf" && ending != ".safetensors") return std::nullopt;
  if (stem.size() <= kTail) return std::nullopt;
  const std::string_view tail = stem.substr(stem.size() - kTail);
  if (tail.front() != '-' || tail.substr(1 + kNumberDigits, kOf.size()) != kOf) return std::nullopt;
  const auto part = number_within<int>(tail.substr(1, kNumberDigits), 1, 99999);
  const auto total = number_within<int>(tail.substr(kTail - kNumberDigits), 1, 99999);
  if (!part || !total || *part > *total) return std::nullopt;
  return SplitName{std::string(stem.substr(0, stem.size() - kTail)), *part, *total};
}

bool is_companion_gguf(std::string_view path) {
  const std::string name = lower_case(base_name(path));
  return name.starts_with("mmproj") || name.find("-mmproj") != std::string::npos ||
         name.find("imatrix") != std::string::npos;
}

}  // namespace headrace
