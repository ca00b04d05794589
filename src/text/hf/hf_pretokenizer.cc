// See hf_pretokenizer.h. The fields: Hugging Face tokenizers, the JSON form of pre-tokenizers.
#include "text/hf/hf_pretokenizer.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headrace::text {
namespace {

using nlohmann::json;

// The steps, as describe() spells them, and the name of the rules that do the same. The patterns
// are those of the published tokenizer.json files, character by character.
struct Known {
  std::string_view steps;
  std::string_view name;
};
#define HEADRACE_NO_CASE "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define HEADRACE_LINES_AND_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define HEADRACE_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define HEADRACE_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define HEADRACE_LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define HEADRACE_SYMBOLS " ?[^\\s\\p{L}\\p{N}]+"
constexpr Known kKnown[] = {
    {"words, bytes", "gpt-2"},
    {"split /'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+/, "
     "bytes",
     "gpt-2"},
    {"digits, words, bytes", "smollm"},
    {"split /\\p{N}/, words, bytes", "smollm"},
    {"split /" HEADRACE_NO_CASE "|" HEADRACE_LEAD "\\p{L}+|\\p{N}{1,3}|" HEADRACE_SYMBOLS
     "[\\r\\n]*|" HEADRACE_LINES_AND_SPACES "/, bytes",
     "llama3"},
    {"split /" HEADRACE_NO_CASE "|" HEADRACE_LEAD "\\p{L}+|\\p{N}|" HEADRACE_SYMBOLS
     "[\\r\\n]*|" HEADRACE_LINES_AND_SPACES "/, bytes",
     "qwen2"},
    {"split /[\\r\\n]/, split /\\s?\\p{L}+/, split /\\s?\\p{P}+/, "
     "split /[一-龥ࠀ-一가-퟿]+/, digits, bytes",
     "deepseek-coder"},
    {"split /\\p{N}{1,3}/, split /[一-龥぀-ゟ゠-ヿ]+/, "
     "split /[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
     "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"  //
     HEADRACE_LINES_AND_SPACES "/, bytes",
     "deepseek-v3"},
    {"split /" HEADRACE_LEAD HEADRACE_UPPER "*" HEADRACE_LOWER "+|" HEADRACE_LEAD HEADRACE_UPPER
     "+" HEADRACE_LOWER "*|\\p{N}|" HEADRACE_SYMBOLS "[\\r\\n/]*|" HEADRACE_LINES_AND_SPACES
     "/, bytes",
     "tekken"},
    {"split /" HEADRACE_LEAD HEADRACE_UPPER "*" HEADRACE_LOWER "+" HEADRACE_NO_CASE
     "?|" HEADRACE_LEAD HEADRACE_UPPER "+" HEADRACE_LOWER "*" HEADRACE_NO_CASE
     "?|\\p{N}{1,3}|" HEADRACE_SYMBOLS "[\\r\\n/]*|" HEADRACE_LINES_AND_SPACES "/, bytes",
     "gpt-4o"},
};
#undef HEADRACE_NO_CASE
#undef HEADRACE_LINES_AND_SPACES
#undef HEADRACE_UPPER
#undef HEADRACE_LOWER
#undef HEADRACE_LEAD
#undef HEADRACE_SYMBOLS

bool flag(const json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void add_step(std::string& steps, std::string_view step) {
  if (!steps.empty()) steps += ", ";
  steps += step;
}

// Appends what a step does, in words of our own; a step that is not plain is named with its type.
void describe(const json& step, int depth, std::string& out) {
  constexpr int kMaxDepth = 4;
  if (!step.is_object() || depth > kMaxDepth) return add_step(out, "unreadable");
  const std::string type = text_of(step, "type");
  if (type == "Sequence") {
    const auto parts = step.find("pretokenizers");
    if (parts == step.end() || !parts->is_array()) return add_step(out, "unreadable");
    for (const json& part : *parts) describe(part, depth + 1, out);
  } else if (type == "ByteLevel" && !flag(step, "add_prefix_space", true)) {
    if (flag(step, "use_regex", true)) add_step(out, "words");
    add_step(out, "bytes");
  } else if (type == "Digits" && flag(step, "individual_digits", false)) {
    add_step(out, "digits");
  } else if (type == "Split" && text_of(step, "behavior") == "Isolated" &&
             !flag(step, "invert", false) && step.contains("pattern") &&
             step["pattern"].is_object() && step["pattern"].contains("Regex")) {
    add_step(out, "split /" + text_of(step["pattern"], "Regex") + "/");
  } else {
    add_step(out, "other " + (type.empty() ? std::string("step") : type));
  }
}

/// One step by its description.
nlohmann::ordered_json step_json(std::string_view step) {
  constexpr std::string_view kSplit = "split /";
  if (step == "digits") return {{"type", "Digits"}, {"individual_digits", true}};
  if (step.starts_with(kSplit)) {
    step.remove_prefix(kSplit.size());
    step.remove_suffix(1);
    return {{"type", "Split"},
            {"pattern", {{"Regex", std::string(step)}}},
            {"behavior", "Isolated"},
            {"invert", false}};
  }
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", step == "words"}};
}

/// The end of the first step of a description. A pattern may have commas.
size_t end_of_step(std::string_view steps) {
  const bool is_split = steps.starts_with("split /");
  const size_t at = steps.find(is_split ? "/, " : ", ");
  return at == steps.npos ? steps.size() : at + (is_split ? 1 : 0);
}

}  // namespace

Result<PreTokenizerName> recognise_pre_tokenizer(const json& pre_tokenizer) {
  std::string steps;
  if (pre_tokenizer.is_null()) {
    steps = "none";
  } else {
    describe(pre_tokenizer, 0, steps);
  }
  for (const Known& known : kKnown) {
    if (known.steps == steps) return find_pre_tokenizer(known.name);
  }
  return Error{ErrorCode::unsupported,
               "expected a known pre-tokeniser, found the steps: " + steps.substr(0, 500),
               "pre_tokenizer", "choose one with --pre-tokenizer NAME"};
}

std::optional<PreTokenizerName> recognise_split(const json& step) {
  std::string steps;
  describe(step, 0, steps);
  steps += ", bytes";
  for (const Known& known : kKnown) {
    if (known.steps != steps) continue;
    const auto found = find_pre_tokenizer(known.name);
    if (found.ok()) return *found;
  }
  return std::nullopt;
}

std::optional<nlohmann::ordered_json> pre_tokenizer_json(PreTokenizer rules) {
  const auto known = std::ranges::find_if(kKnown, [&](const Known& one) {
    const auto found = find_pre_tokenizer(one.name);
    return found.ok() && found->rules == rules;
  });
  if (known == std::end(kKnown)) return std::nullopt;
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (std::string_view rest = known->steps; !rest.empty();) {
    const size_t end = end_of_step(rest);
    const std::string_view step = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 2));
    steps.push_back(step_json(step));
    if (step == "words") break;  // a step with the bytes' alphabet does both
  }
  if (steps.size() == 1) return steps[0];
  return nlohmann::ordered_json{{"type", "Sequence"}, {"pretokenizers", steps}};
}

}  // namespace headrace::text
