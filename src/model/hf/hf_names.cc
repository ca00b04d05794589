// See hf_names.h.
#include "model/hf/hf_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

namespace headrace {
namespace {

constexpr size_t kMostNumbers = 3;
// More digits than any layer, expert or head has.
constexpr size_t kMostDigits = 6;

struct Numbers {
  std::array<std::string_view, kMostNumbers> texts;
  size_t count = 0;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether `name` is `rule` with numbers for its '#'.
bool matches(std::string_view rule, std::string_view name, Numbers& numbers) {
  numbers.count = 0;
  size_t at = 0;
  for (const char c : rule) {
    if (c != '#') {
      if (at == name.size() || name[at] != c) return false;
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < name.size() && at - begin < kMostDigits && is_digit(name[at])) ++at;
    const bool is_padded = at - begin > 1 && name[begin] == '0';
    if (at == begin || is_padded || numbers.count == kMostNumbers) return false;
    numbers.texts[numbers.count++] = name.substr(begin, at - begin);
  }
  return at == name.size();
}

/// `rule` with its '#' filled in.
std::string fill(std::string_view rule, const Numbers& numbers) {
  std::string out;
  size_t next = 0;
  for (const char c : rule) {
    if (c != '#') {
      out += c;
    } else if (next < numbers.count) {
      out += numbers.texts[next++];
    }
  }
  return out;
}

int64_t last_number(const Numbers& numbers) {
  int64_t row = 0;
  if (numbers.count == 0) return row;
  const std::string_view text = numbers.texts[numbers.count - 1];
  std::from_chars(text.data(), text.data() + text.size(), row);
  return row;
}

/// The names that a tensor may have as part of a causal language model: its own, without the
/// wrapping of a model that also sees, or with the prefix that a bare base model lacks.
std::vector<std::string> spellings(const std::string& name) {
  constexpr std::string_view kInner = "model.language_model.";
  constexpr std::string_view kOuter = "language_model.";
  std::vector<std::string> out = {name};
  if (name.starts_with(kInner)) out.push_back("model." + name.substr(kInner.size()));
  if (name.starts_with(kOuter)) {
    out.push_back(name.substr(kOuter.size()));
    out.push_back("model." + name.substr(kOuter.size()));
  }
  constexpr std::string_view kBert = "bert.";  // around it where it has a head
  if (name.starts_with(kBert)) out.push_back(name.substr(kBert.size()));
  out.push_back("model." + name);
  out.push_back("transformer." + name);
  return out;
}

}  // namespace

std::optional<HfPlace> place_hf_tensor(std::span<const HfName> rules, std::string_view name) {
  Numbers numbers;
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    for (const std::string_view ending : {".weight", ".bias", ""}) {
      if (!name.ends_with(ending)) continue;
      const std::string_view stem = name.substr(0, name.size() - ending.size());
      if (!matches(rule->hf, stem, numbers)) continue;
      if (rule->change == HfChange::skip) return HfPlace{};
      return HfPlace{fill(rule->gguf, numbers) + std::string(ending), rule->change,
                     last_number(numbers)};
    }
  }
  return std::nullopt;
}

std::optional<HfPlace> place_gguf_tensor(std::span<const HfName> rules, std::string_view name,
                                         int64_t row) {
  Numbers numbers;
  const std::string row_text = std::to_string(row);
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (rule->gguf.empty() || rule->change == HfChange::gate_and_up ||
        rule->change == HfChange::expert_down) {
      continue;
    }
    for (const std::string_view ending : {".weight", ".bias", ""}) {
      if (!name.ends_with(ending)) continue;
      const std::string_view stem = name.substr(0, name.size() - ending.size());
      if (!matches(rule->gguf, stem, numbers)) continue;
      if (rule->change == HfChange::stack && numbers.count < kMostNumbers) {
        numbers.texts[numbers.count++] = row < 0 ? "0" : std::string_view(row_text);
      }
      HfPlace out{fill(rule->hf, numbers) + std::string(ending), rule->change, row};
      const auto back = place_hf_tensor(rules, out.gguf);
      if (back && back->gguf == name) return out;
    }
  }
  return std::nullopt;
}

std::optional<HfPlace> find_hf_place(std::span<const HfName> rules, const std::string& name) {
  for (const std::string& spelling : spellings(name)) {
    if (auto place = place_hf_tensor(rules, spelling)) return place;
  }
  return std::nullopt;
}

}  // namespace headrace
