// Template source to tokens, with Jinja's whitespace control as transformers configures it:
// trim_blocks, lstrip_blocks, a single trailing newline dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::jinja {

enum class TokenType : uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenType type = TokenType::end;
  int line = 1;
  std::string text;  ///< data and strings: decoded; names, operators and numbers: as written
  int64_t integer = 0;
  double real = 0;
};

/// Faults: a character no token begins with, unbalanced brackets, unclosed comments and strings.
/// The last token is `end`.
std::vector<Token> tokenize(std::string_view source);

/// For messages: "'endfor'", "end of statement block".
std::string describe(const Token& token);

}  // namespace headrace::jinja
