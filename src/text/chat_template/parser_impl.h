// The parser's class, shared by parser.cc (statements) and parser_expr.cc (expressions).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/ast.h"
#include "text/chat_template/fault.h"
#include "text/chat_template/lexer.h"

namespace headrace::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, int32_t max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  Body parse();

 private:
  using Names = std::initializer_list<std::string_view>;

  // Tokens.
  const Token& current() const { return tokens_[pos_]; }
  const Token& ahead() const { return tokens_[std::min(pos_ + 1, tokens_.size() - 1)]; }
  const Token& next() { return pos_ + 1 < tokens_.size() ? tokens_[pos_++] : tokens_[pos_]; }
  bool is(TokenType type) const { return current().type == type; }
  bool is_op(std::string_view op) const { return is(TokenType::op) && current().text == op; }
  bool is_name(std::string_view name) const {
    return is(TokenType::name) && current().text == name;
  }
  bool is_any_name(Names names) const;
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_identifier();
  void expect(TokenType type, std::string_view what);
  [[noreturn]] void unexpected(std::string_view expected) const;

  // Depth: of the recursion, and of the tree where chains grow it without recursion.
  struct Nest {
    explicit Nest(Parser& p) : parser(p) {
      if (++parser.depth_ > parser.max_depth_) parser.too_deep(parser.current().line);
    }
    ~Nest() { --parser.depth_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    Parser& parser;
  };
  [[noreturn]] void too_deep(int line) const;
  /// `child` is about to become a part of `node`.
  void adopt(Expr& node, const ExprPtr& child) const;

  // Statements.
  Body parse_body(Names ends);
  StmtPtr parse_statement(Names ends);
  StmtPtr parse_set();
  StmtPtr parse_for();
  StmtPtr parse_if();
  StmtPtr parse_macro();
  StmtPtr parse_call_block();
  StmtPtr parse_filter_block();
  StmtPtr parse_with();
  StmtPtr parse_scope(std::string_view end);
  StmtPtr parse_autoescape();
  StmtPtr parse_block();
  void parse_print(Body& body);
  std::vector<Parameter> parse_signature();
  void parse_macro_body(MacroStmt& macro, std::string_view end);
  /// A body in its own frame: names unknown to us are faults again, and break may not leave it
  /// where it is a function.
  Body parse_inner(Names ends, bool in_loop);
  Target parse_target(Names ends, bool with_namespace);
  Target parse_target_item(bool with_namespace);
  Target name_target(const Token& token);

  // Expressions, lowest precedence first.
  bool at_tuple_end(Names ends) const;
  ExprPtr parse_tuple(bool with_conditional, Names ends, bool in_parentheses);
  ExprPtr parse_expression() { return parse_conditional(); }
  ExprPtr parse_conditional();
  ExprPtr parse_logic(bool is_or);
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter);
  ExprPtr parse_primary();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_filters(ExprPtr node);
  ExprPtr parse_subscript(ExprPtr node);
  ExprPtr parse_call(ExprPtr node);
  ExprPtr parse_filter(ExprPtr node);
  ExprPtr parse_filter_chain(ExprPtr node);
  ExprPtr parse_test(ExprPtr node);
  Arguments parse_arguments(Expr& owner);
  std::string parse_dotted_name();
  void check_known(bool known, std::string_view what, const std::string& name, int line);

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int32_t max_depth_;
  int32_t depth_ = 0;
  bool in_loop_ = false;      // break and continue are allowed
  int loop_nesting_ = 0;      // `loop` may not be assigned
  bool conditional_ = false;  // unknown filters fail when they run only
  std::vector<Fault> unknown_;
  std::vector<MacroStmt*> macros_;
};

}  // namespace headrace::jinja
