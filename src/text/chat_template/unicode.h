// Code points of UTF-8 text, with the classes and case mappings of Python's str. A byte that is not
// part of a valid sequence counts as one code point that has no class and no case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::jinja {

struct CodePoint {
  int32_t value = -1;  ///< -1: an invalid byte
  uint32_t length = 1;
};

/// The code point at `pos` (pos < text.size()).
CodePoint decode_at(std::string_view text, size_t pos);
/// Start of the code point that ends at `pos` (pos > 0).
size_t previous_start(std::string_view text, size_t pos);
size_t count_code_points(std::string_view text);
/// Byte offset of code point `index`; text.size() where there are fewer.
size_t byte_offset(std::string_view text, size_t index);
void append_utf8(std::string& out, int32_t code_point);

bool is_space(int32_t c);
bool is_alpha(int32_t c);
bool is_decimal(int32_t c);
bool is_digit(int32_t c);
bool is_numeric(int32_t c);
bool is_alnum(int32_t c);
bool is_upper(int32_t c);
bool is_lower(int32_t c);
bool is_title(int32_t c);
bool is_printable(int32_t c);
/// Ends a line for str.splitlines.
bool is_line_break(int32_t c);
/// May be part of a Jinja name.
inline bool is_word(int32_t c) {
  return c == '_' || is_alnum(c);
}

enum class Case { upper, lower, title, fold };
/// Appends the mapping of `c`, which may be several code points.
void append_case(std::string& out, int32_t c, Case how);

}  // namespace headrace::jinja
