#include "text/chat_template/lexer.h"

#include <charconv>

#include "text/chat_template/fault.h"
#include "text/chat_template/number_format.h"
#include "text/chat_template/string_literal.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  return out;
}

size_t skip_space(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    const auto c = decode_at(text, pos);
    if (!is_space(c.value)) break;
    pos += c.length;
  }
  return pos;
}

size_t strip_space_end(std::string_view text, size_t begin, size_t end) {
  while (end > begin) {
    const size_t start = previous_start(text.substr(0, end), end);
    if (start < begin || !is_space(decode_at(text, start).value)) break;
    end = start;
  }
  return end;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(normalize_newlines(source)), source_(owned_) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);
  }

  std::vector<Token> run() {
    while (pos_ < source_.size()) lex_root();
    add(TokenType::end, "");
    return std::move(tokens_);
  }

 private:
  Token& add(TokenType type, std::string_view text) {
    Token token;
    token.type = type;
    token.line = line_;
    token.text = text;
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  /// Moves to `pos`, counting lines.
  void advance(size_t pos) {
    for (; pos_ < pos; ++pos_) {
      if (source_[pos_] == '\n') ++line_;
    }
  }

  bool at(std::string_view what) const { return source_.substr(pos_).starts_with(what); }

  /// '-', '+' or 0 at `pos`.
  char sign_at(size_t pos) const {
    const char c = pos < source_.size() ? source_[pos] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  /// Emits the data before a tag at `tag`, stripped as its sign says.
  void lex_data(size_t tag, char sign, bool is_variable) {
    size_t end = tag;
    if (sign == '-') {
      end = strip_space_end(source_, pos_, tag);
    } else if (sign != '+' && !is_variable) {
      const auto newline = source_.substr(pos_, tag - pos_).rfind('\n');
      if (newline != std::string_view::npos || line_starting_) {
        const size_t line_begin = newline == std::string_view::npos ? pos_ : pos_ + newline + 1;
        if (skip_space(source_.substr(0, tag), line_begin) == tag) end = line_begin;
      }
    }
    if (end > pos_) add(TokenType::data, source_.substr(pos_, end - pos_));
    advance(tag);
  }

  void lex_root() {
    size_t tag = pos_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        add(TokenType::data, source_.substr(pos_));
        advance(source_.size());
        return;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    const char type = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    size_t raw_body = 0;
    if (type == '%' && is_raw_begin(tag + 2 + (sign != 0), raw_body)) {
      lex_data(tag, sign, false);
      lex_raw(raw_body);
      return;
    }
    lex_data(tag, sign, type == '{');
    if (type == '{') {
      add(TokenType::variable_begin, "{{");
    } else if (type == '%') {
      add(TokenType::block_begin, "{%");
    }
    advance(tag + 2 + (sign != 0));
    if (type == '#') {
      lex_comment();
    } else {
      lex_code(type == '{');
    }
  }

  bool is_raw_begin(size_t pos, size_t& body) const {
    pos = skip_space(source_, pos);
    if (!source_.substr(pos).starts_with("raw")) return false;
    pos = skip_space(source_, pos + 3);
    const auto rest = source_.substr(pos);
    if (rest.starts_with("%}")) {
      body = pos + 2;
    } else if (rest.starts_with("-%}")) {
      body = skip_space(source_, pos + 3);
    } else {
      return false;
    }
    return true;
  }

  void lex_raw(size_t body) {
    line_starting_ = source_[body - 1] == '\n';
    advance(body);
    for (size_t tag = body; (tag = source_.find("{%", tag)) != std::string_view::npos; ++tag) {
      const char sign = sign_at(tag + 2);
      size_t pos = skip_space(source_, tag + 2 + (sign != 0));
      if (!source_.substr(pos).starts_with("endraw")) continue;
      pos = skip_space(source_, pos + 6);
      const size_t end = tag_end(pos, "%}", true);
      if (end == 0) continue;
      lex_data(tag, sign, false);
      finish_tag(end);
      return;
    }
    fail("missing end of raw block: expected '{% endraw %}'", line_);
  }

  /// Where the tag ends if `close` (with a sign and what that eats) stands at `pos`, else 0.
  size_t tag_end(size_t pos, std::string_view close, bool is_block) const {
    const auto rest = source_.substr(std::min(pos, source_.size()));
    if (rest.starts_with('-') && rest.substr(1).starts_with(close)) {
      return skip_space(source_, pos + 1 + close.size());
    }
    if (is_block && rest.starts_with('+') && rest.substr(1).starts_with(close)) {
      return pos + 1 + close.size();
    }
    if (!rest.starts_with(close)) return 0;
    const size_t end = pos + close.size();
    return is_block && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  void finish_tag(size_t end) {
    advance(end);
    line_starting_ = source_[end - 1] == '\n';
  }

  void lex_comment() {
    for (size_t pos = pos_; pos < source_.size(); ++pos) {
      const size_t end = tag_end(pos, "#}", true);
      if (end == 0) continue;
      finish_tag(end);
      return;
    }
    fail("missing end of comment: expected '#}'", line_);
  }

  void lex_code(bool is_variable) {
    const std::string_view close = is_variable ? "}}" : "%}";
    while (pos_ < source_.size()) {
      if (brackets_.empty()) {
        if (const size_t end = tag_end(pos_, close, !is_variable)) {
          add(is_variable ? TokenType::variable_end : TokenType::block_end, close);
          finish_tag(end);
          return;
        }
      }
      lex_token();
    }
    // The parser says what is missing; unbalanced brackets are forgotten with the rest.
    brackets_.clear();
  }

  void lex_token() {
    const size_t after_space = skip_space(source_, pos_);
    if (after_space > pos_) {
      advance(after_space);
      return;
    }
    const char c = source_[pos_];
    if (c >= '0' && c <= '9') {
      lex_number();
    } else if (c == '\'' || c == '"') {
      lex_string(c);
    } else if (is_word(decode_at(source_, pos_).value)) {
      lex_name();
    } else {
      lex_operator();
    }
  }

  void lex_name() {
    size_t end = pos_;
    while (end < source_.size()) {
      const auto c = decode_at(source_, end);
      if (!is_word(c.value)) break;
      end += c.length;
    }
    const auto first = decode_at(source_, pos_).value;
    if (first != '_' && !is_alpha(first)) fail("invalid character in identifier", line_);
    add(TokenType::name, source_.substr(pos_, end - pos_));
    pos_ = end;
  }

  void lex_string(char quote) {
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("unclosed string: expected " + std::string(1, quote), line_);
    auto decoded = unescape_literal(source_.substr(pos_ + 1, end - pos_ - 1), line_);
    add(TokenType::string, decoded);
    advance(end + 1);
  }

  /// Digits of a base, each group possibly after one '_'; returns the end.
  template <class IsDigit>
  size_t digits(size_t pos, IsDigit is_digit_of_base) const {
    while (pos < source_.size()) {
      const size_t digit = source_[pos] == '_' ? pos + 1 : pos;
      if (digit >= source_.size() || !is_digit_of_base(source_[digit])) break;
      pos = digit + 1;
    }
    return pos;
  }

  static bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

  /// The end of a number with a fraction or an exponent at pos_, or 0.
  size_t real_end() const {
    if (pos_ > 0 && source_[pos_ - 1] == '.') return 0;  // the 1 of `a.0.1` is an index
    const size_t whole = digits(pos_, is_ascii_digit);
    size_t end = whole;
    const auto digit_at = [&](size_t pos) {
      return pos < source_.size() && is_ascii_digit(source_[pos]);
    };
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      end = digits(end + 1, is_ascii_digit);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t sign = sign_at(end + 1) != 0 ? 1 : 0;
      if (digit_at(end + 1 + sign)) return digits(end + 1 + sign, is_ascii_digit);
    }
    return end > whole ? end : 0;
  }

  void lex_number() {
    if (const size_t end = real_end()) {
      auto& token = add(TokenType::real, without_underscores(end));
      token.real = read_real(token.text).value_or(0);
      pos_ = end;
      return;
    }
    int base = 10;
    size_t start = pos_;
    const char mark = pos_ + 1 < source_.size() ? static_cast<char>(source_[pos_ + 1] | 32) : '\0';
    if (source_[pos_] == '0') base = mark == 'x' ? 16 : (mark == 'o' ? 8 : (mark == 'b' ? 2 : 10));
    const auto in_base = [&](char c) {
      const int low = c | 32;
      const int digit = is_ascii_digit(c) ? c - '0' : (low >= 'a' && low <= 'f' ? low - 87 : 99);
      return digit < base;
    };
    size_t end = base == 10 ? pos_ : digits(pos_ + 2, in_base);
    if (base != 10 && end > pos_ + 2) {
      start = pos_ + 2;
    } else {
      base = 10;
      const bool zero = source_[pos_] == '0';  // Python reads 007 as 00 and 7
      end = digits(pos_, [&](char c) { return zero ? c == '0' : is_ascii_digit(c); });
    }
    pos_ = start;
    auto& token = add(TokenType::integer, without_underscores(end));
    const auto& text = token.text;
    const auto done = std::from_chars(text.data(), text.data() + text.size(), token.integer, base);
    if (done.ec != std::errc()) fail("integer '" + text + "' does not fit 64 bits", line_);
    pos_ = end;
  }

  std::string without_underscores(size_t end) const {
    std::string text(source_.substr(pos_, end - pos_));
    std::erase(text, '_');
    return text;
  }

  void lex_operator() {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t length = 1;
    for (const auto two : kTwo) {
      if (at(two)) length = 2;
    }
    const auto op = source_.substr(pos_, length);
    if (length == 1 &&
        std::string_view("+-/*%~[](){}><=.:|,;").find(op) == std::string_view::npos) {
      fail("unexpected character '" +
               std::string(source_.substr(pos_, decode_at(source_, pos_).length)) + "'",
           line_);
    }
    if (op == "(" || op == "[" || op == "{") {
      brackets_.push_back(op == "(" ? ')' : (op == "[" ? ']' : '}'));
    } else if (op == ")" || op == "]" || op == "}") {
      if (brackets_.empty()) fail("unexpected '" + std::string(op) + "'", line_);
      if (brackets_.back() != op[0]) {
        fail("unexpected '" + std::string(op) + "', expected '" + brackets_.back() + "'", line_);
      }
      brackets_.pop_back();
    }
    add(TokenType::op, op);
    pos_ += length;
  }

  std::string owned_;
  std::string_view source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string brackets_;  // the closing brackets still due
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::data:
      return "template text";
    case TokenType::variable_begin:
      return "'{{'";
    case TokenType::variable_end:
      return "end of print statement";
    case TokenType::block_begin:
      return "'{%'";
    case TokenType::block_end:
      return "end of statement block";
    case TokenType::string:
      return "a string";
    case TokenType::end:
      return "end of template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace headrace::jinja
