// See lighter_models.h.
#include "cli/lighter_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

constexpr const char* kLighterModel = "--lighter-model";

Error wrong_pair(std::string message, std::string hint = "") {
  return {ErrorCode::invalid_argument, std::move(message), kLighterModel, std::move(hint)};
}

/// From each model the way over its lighter ones must end.
Result<void> check_circles(const std::vector<LighterPair>& pairs) {
  for (const LighterPair& first : pairs) {
    std::string way = printable(first.model, 60);
    std::string at = first.model;
    for (size_t i = 0; i <= pairs.size() && !at.empty(); ++i) {
      at = lighter_of(pairs, at);
      if (at.empty()) break;
      way += " -> " + printable(at, 60);
      if (at == first.model) {
        return wrong_pair("goes in a circle: " + way, "leave one of them out");
      }
    }
  }
  return {};
}

Result<const TokensOfModel*> tokens_of(const std::string& name,
                                       const std::vector<TokensOfModel>& models) {
  std::string known;
  for (const TokensOfModel& each : models) {
    if (each.name == name) return &each;
    known += (known.empty() ? "" : ", ") + printable(each.name, 60);
  }
  return Error{ErrorCode::not_found,
               fmt::format("'{}' is not served; there are {}", printable(name, 60), known),
               kLighterModel, "give it too: -m NAME=FILE"};
}

}  // namespace

Result<std::vector<LighterPair>> lighter_pairs(const std::vector<std::string>& texts) {
  std::vector<LighterPair> out;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      return wrong_pair(fmt::format("expected MODEL=LIGHTER, got '{}'", printable(text, 60)));
    }
    LighterPair pair{text.substr(0, equals), text.substr(equals + 1)};
    if (const std::string other = lighter_of(out, pair.model); !other.empty()) {
      return wrong_pair(
          fmt::format("'{}' has two lighter models, '{}' and '{}'", printable(pair.model, 60),
                      printable(other, 60), printable(pair.lighter, 60)),
          "a lighter model may have one of its own");
    }
    out.push_back(std::move(pair));
  }
  HEADRACE_TRY(check_circles(out));
  return out;
}

std::string lighter_of(const std::vector<LighterPair>& pairs, const std::string& model) {
  const auto found = std::find_if(pairs.begin(), pairs.end(),
                                  [&](const LighterPair& each) { return each.model == model; });
  return found == pairs.end() ? "" : found->lighter;
}

Result<void> check_lighter_pairs(const std::vector<LighterPair>& pairs,
                                 const std::vector<TokensOfModel>& models) {
  for (const LighterPair& pair : pairs) {
    HEADRACE_ASSIGN(const TokensOfModel* model, tokens_of(pair.model, models));
    HEADRACE_ASSIGN(const TokensOfModel* lighter, tokens_of(pair.lighter, models));
    auto same = check_same_tokenizer(*model->tokenizer, printable(pair.model, 60),
                                     *lighter->tokenizer, printable(pair.lighter, 60));
    if (!same.ok()) return std::move(same).error().at(kLighterModel);
    if (model->vocab_size == lighter->vocab_size) continue;
    return Error{ErrorCode::mismatch,
                 fmt::format("'{}' has {} tokens and '{}' {}", printable(pair.model, 60),
                             model->vocab_size, printable(pair.lighter, 60), lighter->vocab_size),
                 kLighterModel, "give a lighter model of the same family"};
  }
  return {};
}

}  // namespace headrace::cli
