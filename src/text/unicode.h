// UTF-8 and the Unicode categories that tokenizers ask about. Owns the category table. Must not
// know vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::text {

/// Bits of a character's class, after its Unicode general category.
enum CharClass : uint8_t {
  kLetter = 1,   ///< L*
  kNumber = 2,   ///< N*
  kSpace = 4,    ///< property White_Space
  kMark = 8,     ///< M*
  kPunct = 16,   ///< P*
  kSymbol = 32,  ///< S*
  kUpper = 64,   ///< Lu, Lt
  kLower = 128   ///< Ll
};

inline constexpr char32_t kReplacement = 0xFFFD;

/// One decoded character. An ill-formed sequence decodes to U+FFFD with the length of its maximal
/// subpart (The Unicode Standard, section 3.9, "U+FFFD Substitution of Maximal Subparts").
struct Decoded {
  char32_t code = 0;
  uint32_t size = 0;  ///< bytes taken, at least 1
  bool valid = true;
};

/// Decodes the character at `p`; requires p < end.
Decoded decode_utf8(const char* p, const char* end);

/// How many bytes at the end of `text` are the beginning of a character that more bytes could
/// complete (0 to 3).
size_t incomplete_tail(std::string_view text);

void append_utf8(std::string& out, char32_t code);

bool is_well_formed(std::string_view text);

/// `text` with every maximal ill-formed subpart replaced by U+FFFD.
std::string replace_invalid(std::string_view text);

/// Normalisation form C; `text` itself where it is in that form already. Ill-formed bytes stay.
std::string to_nfc(std::string_view text);
/// Any normal form: compatibility (K) or canonical, composed (C) or decomposed (D). Ill-formed
/// bytes stay.
std::string to_normal_form(std::string_view text, bool compatibility, bool composed);
/// Whether to_nfc(text) is surely equal to text. Never allocates.
bool surely_nfc(std::string_view text);

/// The canonical decomposition (form D) of one character, appended to `out`.
void append_decomposed(std::vector<char32_t>& out, char32_t code);
/// The simple lower-case mapping.
char32_t to_lower(char32_t code);
bool is_nonspacing_mark(char32_t code);
/// What `\w` matches (Unicode Technical Standard 18, annex C): letters and letter-like symbols,
/// marks, decimal and letter numbers, connectors, joiners.
bool is_word_character(char32_t code);
/// Any of the categories C* (control, format, private use, surrogate, unassigned).
bool is_other(char32_t code);

/// Classes of all code points, in two stages so that it stays in cache.
class CharTable {
 public:
  static const CharTable& get();

  uint8_t ascii(unsigned char byte) const { return ascii_[byte]; }
  uint8_t of(char32_t code) const {
    return code < 0x110000 ? blocks_[(size_t{stage_[code >> 8]} << 8) | (code & 0xFF)] : 0;
  }

 private:
  CharTable();

  std::array<uint8_t, 128> ascii_{};
  std::array<uint16_t, 0x1100> stage_{};
  std::vector<uint8_t> blocks_;
};

inline bool is_space(char32_t code) {
  return (CharTable::get().of(code) & kSpace) != 0;
}

}  // namespace headrace::text
