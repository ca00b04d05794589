// Regular expressions of tokenizer files: PCRE2 behind the dialect that the files are written in.
// Owns the compiled pattern. Must not know tokenizers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "headrace/result.h"

namespace headrace::text {

/// A pattern may have at most so many bytes.
inline constexpr size_t kMaxPatternBytes = size_t{64} << 10;

/// The pattern of Oniguruma's Ruby dialect (what Hugging Face tokenizers compiles patterns with)
/// in PCRE2's: hexadecimal `\h`, Unicode `\s \d \w`, classes inside of classes and `&&`, long
/// property names, `{,n}`, lines at line feeds alone. Error (unsupported): nesting over 32, or
/// something without an equal.
Result<std::string> translate_pattern(std::string_view pattern);

class Regex {
 public:
  /// Error (unsupported) that has the pattern, what is wrong, and where in it.
  static Result<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// Calls `found(begin, end)` for each match from left to right, as byte offsets into `text`; they
  /// do not overlap, and may be empty. Ill-formed bytes are characters that no class of letters,
  /// numbers, marks or spaces has. From any thread. Throws EncodeFault (resource_exhausted) where
  /// the pattern needs more steps or memory than a match is given, or more time than is left of the
  /// thread's RegexBudget (without one: of its own).
  void each_match(std::string_view text, FunctionRef<void(size_t, size_t)> found) const;

  const std::string& pattern() const { return pattern_; }

 private:
  struct State;
  Regex(std::string pattern, std::unique_ptr<State> state);

  std::string pattern_;  ///< as the file has it
  std::unique_ptr<State> state_;
};

}  // namespace headrace::text
