// The text of one completion as its tokens come: detokenised, ended at a stop string, and which
// token stands for which part. Must not know JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/stop_strings.h"
#include "headrace/request.h"
#include "text/detokenizer.h"

namespace headrace::api {

/// A token and the part of the text that it stands for.
struct TokenText {
  TokenId id = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top;
  size_t begin = 0;  ///< bytes of the text
  size_t end = 0;    ///< of a token that ends within a character: where that character ends
};

struct ChoiceTextOptions {
  std::shared_ptr<const StopStrings> stop_strings = nullptr;
  int64_t min_tokens = 0;  ///< in whose text no stop string is looked for
  bool goes_on = false;    ///< the text follows one that is there already
  bool keeps_tokens = false;
};

class ChoiceText {
 public:
  ChoiceText(std::shared_ptr<const Tokenizer> tokenizer, const ChoiceTextOptions& options);

  /// The text that became certain with this token: whole characters, nothing of a stop string.
  /// After a stop tokens are counted as overrun, and give nothing.
  std::string push(const TokenEvent& token);
  /// The rest. A character that was cut by the end is U+FFFD.
  std::string finish();

  bool has_stopped() const { return matcher_.has_stopped(); }
  /// The stop string that ended it.
  const std::string& stop() const { return matcher_.stop(); }

  /// If kept: those whose whole part is in the text given out so far, and that were not taken yet.
  std::vector<TokenText> take_tokens();

  /// Up to the end or the stop.
  int64_t num_tokens() const { return num_tokens_; }
  /// Computed past a stop string.
  int64_t num_overrun() const { return num_overrun_; }

 private:
  std::string pass(const std::string& piece);

  Detokenizer detokenizer_;
  StopMatcher matcher_;
  const int64_t min_tokens_;
  const bool keeps_tokens_;
  std::vector<TokenText> tokens_;  ///< not taken yet
  size_t num_placed_ = 0;          ///< of these, those whose end is known
  size_t detokenized_bytes_ = 0;
  size_t given_bytes_ = 0;
  int64_t num_tokens_ = 0;
  int64_t num_overrun_ = 0;
};

}  // namespace headrace::api
