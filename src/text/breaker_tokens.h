// The tokens that end a repeat (DRY's sequence breakers), from the texts that a user names: those
// whose own text has one of them in it. Must not know sampling.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace headrace {

inline constexpr size_t kMaxBreakers = 64;
inline constexpr size_t kMaxBreakerBytes = 128;  ///< of each

/// Where a user says nothing: line feed, colon, quotation mark and asterisk.
const std::vector<std::string>& default_breakers();

/// Error (invalid_argument, at no place): more than kMaxBreakers, one that is empty or has more
/// than kMaxBreakerBytes.
Result<void> check_breakers(std::span<const std::string> texts);

struct BreakerTokens {
  std::shared_ptr<const std::vector<TokenId>> ids;  ///< ascending
  std::vector<std::string> unknown;  ///< texts that no token has in it: they break nothing
};

/// Finds them for one vocabulary, and remembers the last few lists. From any thread.
class BreakerFinder {
 public:
  explicit BreakerFinder(std::shared_ptr<const Tokenizer> tokenizer);
  /// `texts` as check_breakers() allows them. Time is linear in the vocabulary's bytes.
  BreakerTokens find(const std::vector<std::string>& texts) const;

 private:
  struct Known {
    std::vector<std::string> texts;
    BreakerTokens tokens;
  };

  const std::shared_ptr<const Tokenizer> tokenizer_;
  mutable std::mutex mutex_;
  mutable std::vector<Known> known_;  ///< the last one asked for at the end
};

}  // namespace headrace
