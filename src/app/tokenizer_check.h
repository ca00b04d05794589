// Whether two tokenizers do the same: by their vocabularies and rules, and on texts. Must not know
// the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace headrace {

/// One difference between two tokenizers.
struct TokenizerDifference {
  std::string text;              ///< the first text whose tokens differ; empty: the texts agree
  std::vector<TokenId> a, b;     ///< its tokens, with those around it
  std::string error_a, error_b;  ///< where it could not be tokenised
};

struct TokenizerComparison {
  bool same_rules = false;  ///< check_same_tokenizer() found no difference
  std::string rules;        ///< the first difference in vocabulary or rules, as a sentence
  size_t num_texts = 0;     ///< texts compared, up to the first that differs
  std::optional<TokenizerDifference> difference;

  bool same() const { return same_rules && !difference; }
};

/// Compares `a` and `b`, named `what_a` and `what_b` in the sentence.
TokenizerComparison compare_tokenizers(const Tokenizer& a, std::string_view what_a,
                                       const Tokenizer& b, std::string_view what_b);

}  // namespace headrace
