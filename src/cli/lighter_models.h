// Which model answers for another that has no room (--lighter-model). Must not know how they are
// opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/result.h"
#include "text/tokenizer.h"

namespace headrace::cli {

struct LighterPair {
  std::string model;
  std::string lighter;
};

/// Of "MODEL=LIGHTER" each. Errors (invalid_argument at --lighter-model): another form, a model
/// with two lighter ones, a circle.
Result<std::vector<LighterPair>> lighter_pairs(const std::vector<std::string>& texts);

/// The lighter model of `model`, or "".
std::string lighter_of(const std::vector<LighterPair>& pairs, const std::string& model);

/// What a request must find alike in both models of a pair.
struct TokensOfModel {
  std::string name;
  const Tokenizer* tokenizer = nullptr;
  int64_t vocab_size = 0;
};

/// Errors at --lighter-model: not_found (a name that is none of `models`, which are named),
/// mismatch (two that do not read the same tokens).
Result<void> check_lighter_pairs(const std::vector<LighterPair>& pairs,
                                 const std::vector<TokensOfModel>& models);

}  // namespace headrace::cli
