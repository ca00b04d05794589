// What both ways to format share: widths, padding, cutting.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/chat_template/number_format.h"
#include "text/chat_template/text.h"

namespace headrace::jinja {

/// The decimal number at text[pos], moving pos; -1 where there is none. Faults on numbers beyond
/// 64 bits.
int64_t read_number(std::string_view text, size_t& pos);
/// Appends `text` padded to spec.width code points; align is '<', '>' or '^'.
void append_padded(TextBuilder& out, Budget& budget, const Text& text, const FormatSpec& spec,
                   char align, bool trusted);
/// The same for numbers, which know '=' too: the padding between sign and digits.
void append_number(TextBuilder& out, Budget& budget, const NumberText& number,
                   const FormatSpec& spec, char align, bool number_trusted, bool pad_trusted);
/// The first `precision` code points; all where it is negative.
Text cut(const Text& text, int64_t precision);

}  // namespace headrace::jinja
