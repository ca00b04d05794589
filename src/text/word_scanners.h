// The one-pass scanners of pre-tokenisers: each returns where the word that begins at `p` ends.
// The patterns are those that the models' own tokenizer.json files state; each function cites
// its own. Hand-written, since a backtracking matcher overflows its stack on long runs.
#pragma once

#include "text/unicode.h"

namespace headrace::text {

/// A character as the scanners see it.
struct Char {
  uint8_t classes;
  uint8_t size;  ///< bytes
};

/// Reads characters of [.., end) by class.
class CharReader {
 public:
  explicit CharReader(const char* end) : table_(CharTable::get()), end_(end) {}

  const char* end() const { return end_; }

  /// Requires p < end().
  Char at(const char* p) const {
    const auto byte = static_cast<unsigned char>(*p);
    if (byte < 0x80) return {table_.ascii(byte), 1};
    const Decoded c = decode_utf8(p, end_);
    return {table_.of(c.code), static_cast<uint8_t>(c.size)};
  }

  /// The end of the longest run of characters from `p` that have any of `classes`.
  const char* skip(const char* p, uint8_t classes) const {
    while (p < end_) {
      const Char c = at(p);
      if ((c.classes & classes) == 0) break;
      p += c.size;
    }
    return p;
  }
  /// The end of the longest run of characters from `p` that have none of `classes`.
  const char* skip_without(const char* p, uint8_t classes) const {
    while (p < end_) {
      const Char c = at(p);
      if ((c.classes & classes) != 0) break;
      p += c.size;
    }
    return p;
  }
  const char* skip_line_breaks(const char* p) const {
    while (p < end_ && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }

 private:
  const CharTable& table_;
  const char* end_;
};

/// The length of 's 't 're 've 'm 'll 'd at `p`, or 0; requires *p == '\''.
template <bool kAnyCase>
size_t contraction(const char* p, const char* end) {
  const auto letter = [&](size_t i) -> char {
    if (p + i >= end) return 0;
    const char c = p[i];
    return kAnyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const char second = letter(2);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l')) {
    return 3;
  }
  return 0;
}

/// A run of white space, as `\s*[\r\n]+`, `\s+(?!\S)` and `\s+` need it.
struct SpaceRun {
  const char* end;
  const char* last;         ///< where the last character of the run begins
  const char* after_break;  ///< after the last line break in the run, or null
};

inline SpaceRun space_run(const CharReader& text, const char* p) {
  SpaceRun run{p, p, nullptr};
  while (run.end < text.end()) {
    const Char c = text.at(run.end);
    if ((c.classes & kSpace) == 0) break;
    run.last = run.end;
    if (*run.end == '\r' || *run.end == '\n') run.after_break = run.end + 1;
    run.end += c.size;
  }
  return run;
}

/// `\s+(?!\S)|\s+`: the run but for its last character, which belongs to the next word.
inline const char* space_word(const CharReader& text, const char* p, const SpaceRun& run) {
  return run.end == text.end() || run.last == p ? run.end : run.last;
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+` (GPT-2). With
/// kDigitsFirst every number character was cut out before: the text around it ends there.
template <bool kDigitsFirst>
const char* gpt2_word(const CharReader& text, const char* p) {
  if (*p == '\'') {
    if (const size_t n = contraction<false>(p, text.end()); n > 0) return p + n;
  }
  const char* body = p;
  Char c = text.at(p);
  if (kDigitsFirst && (c.classes & kNumber) != 0) return p + c.size;
  if (*p == ' ' && p + 1 < text.end()) {
    const Char next = text.at(p + 1);
    if ((next.classes & kSpace) == 0 && !(kDigitsFirst && (next.classes & kNumber) != 0)) {
      body = p + 1;
      c = next;
    }
  }
  if ((c.classes & kLetter) != 0) return text.skip(body + c.size, kLetter);
  if ((c.classes & kNumber) != 0) return text.skip(body + c.size, kNumber);
  if ((c.classes & kSpace) == 0) {
    return text.skip_without(body + c.size, kSpace | kLetter | kNumber);
  }
  const SpaceRun run = space_run(text, p);
  if (kDigitsFirst && run.end < text.end() && (text.at(run.end).classes & kNumber) != 0) {
    return run.end;
  }
  return space_word(text, p, run);
}

inline const char* skip_digits(const CharReader& text, const char* p, int most) {
  for (int i = 0; i < most && p < text.end(); ++i) {
    const Char c = text.at(p);
    if ((c.classes & kNumber) == 0) break;
    p += c.size;
  }
  return p;
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|
/// \s*[\r\n]+|\s+(?!\S)|\s+` with D = 3 (Llama 3) or 1 (Qwen 2).
template <int kDigits>
const char* llama3_word(const CharReader& text, const char* p) {
  if (*p == '\'') {
    if (const size_t n = contraction<true>(p, text.end()); n > 0) return p + n;
  }
  const Char c = text.at(p);
  if ((c.classes & kLetter) != 0) return text.skip(p + c.size, kLetter);
  if ((c.classes & kNumber) != 0) return skip_digits(text, p + c.size, kDigits - 1);
  const char* const after = p + c.size;
  const Char next = after < text.end() ? text.at(after) : Char{kSpace, 0};
  if (*p != '\r' && *p != '\n' && (next.classes & kLetter) != 0) {
    return text.skip(after + next.size, kLetter);
  }
  constexpr uint8_t kNotSymbol = kSpace | kLetter | kNumber;
  if ((c.classes & kSpace) == 0 || (*p == ' ' && (next.classes & kNotSymbol) == 0)) {
    return text.skip_line_breaks(text.skip_without(after, kNotSymbol));
  }
  const SpaceRun run = space_run(text, p);
  return run.after_break != nullptr ? run.after_break : space_word(text, p, run);
}

/// `[^\r\n\p{L}\p{N}]?U*W+|[^\r\n\p{L}\p{N}]?U+W*|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n/]*|
/// \s*[\r\n]+|\s+(?!\S)|\s+` with U = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]` and
/// W = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`; D = 1 (Mistral's Tekken), or D = 3 and an optional
/// contraction after either word (GPT-4o).
template <int kDigits, bool kContractions>
const char* cased_word(const CharReader& text, const char* p) {
  const auto is_upper = [](Char c) {
    return (c.classes & (kLetter | kMark)) != 0 && (c.classes & kLower) == 0;
  };
  const auto is_lower = [](Char c) {
    return (c.classes & (kLetter | kMark)) != 0 && (c.classes & kUpper) == 0;
  };
  const auto with_contraction = [&](const char* q) -> const char* {
    if (kContractions && q < text.end() && *q == '\'') q += contraction<true>(q, text.end());
    return q;
  };
  const auto upper_run = [&](const char* q) {
    while (q < text.end() && is_upper(text.at(q))) q += text.at(q).size;
    return q;
  };
  // `U*W+`, or null.
  const auto lower_word = [&](const char* begin) -> const char* {
    const char* q = begin;
    const char* after_both = nullptr;  // after the last character of the U run that is in W too
    while (q < text.end()) {
      const Char c = text.at(q);
      if (!is_upper(c)) break;
      q += c.size;
      if (is_lower(c)) after_both = q;
    }
    if (q == text.end() || !is_lower(text.at(q))) {
      // U* gives back as little as W+ needs.
      return after_both == nullptr ? nullptr : with_contraction(after_both);
    }
    while (q < text.end() && is_lower(text.at(q))) q += text.at(q).size;
    return with_contraction(q);
  };
  const Char c = text.at(p);
  const char* const after = p + c.size;
  const bool is_prefix = (c.classes & (kLetter | kNumber)) == 0 && *p != '\r' && *p != '\n';
  if (is_prefix) {
    if (const char* end = lower_word(after); end != nullptr) return end;
  }
  if (const char* end = lower_word(p); end != nullptr) return end;
  const char* const upper_begin = is_prefix ? after : p;
  if (const char* end = upper_run(upper_begin); end > upper_begin) return with_contraction(end);
  if ((c.classes & kNumber) != 0) return skip_digits(text, after, kDigits - 1);
  constexpr uint8_t kNotSymbol = kSpace | kLetter | kNumber;
  const bool spaced_symbol =
      *p == ' ' && after < text.end() && (text.at(after).classes & kNotSymbol) == 0;
  if ((c.classes & kSpace) == 0 || spaced_symbol) {
    const char* q = text.skip_without(after, kNotSymbol);
    while (q < text.end() && (*q == '\r' || *q == '\n' || *q == '/')) ++q;
    return q;
  }
  const SpaceRun run = space_run(text, p);
  return run.after_break != nullptr ? run.after_break : space_word(text, p, run);
}

}  // namespace headrace::text
