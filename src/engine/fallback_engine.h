// Two engines as one: what the first has no room for goes to a lighter model, where that is
// allowed.
#pragma once

#include <memory>
#include <string>

#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace {

/// Whether Engine::submit refused what it might take at another time: overloaded,
/// resource_exhausted.
bool is_want_of_room(const Error& error);

struct FallbackOptions {
  /// Whether every request may be answered by the lighter model; else those that say so.
  bool for_all = false;
  /// Of the two models' tokenizers, which must be the same: a request is token ids.
  std::string tokenizer_fingerprint;
  std::string lighter_tokenizer_fingerprint;
};

/// Requests go to `first`; one that is refused there for want of room and may be answered by
/// `lighter` goes to that, which counts as MemoryRung::lighter_model. All else is asked of `first`.
/// Error: mismatch, where the tokenizers differ.
Result<std::unique_ptr<Engine>> make_fallback_engine(std::unique_ptr<Engine> first,
                                                     std::unique_ptr<Engine> lighter,
                                                     const FallbackOptions& options);

}  // namespace headrace
