// Expressions by precedence, from tuples and conditionals down to unary operators.
#include "text/chat_template/parser_impl.h"

namespace headrace::jinja {

bool Parser::at_tuple_end(Names ends) const {
  return is(TokenType::variable_end) || is(TokenType::block_end) || is_op(")") || is_any_name(ends);
}

ExprPtr Parser::parse_tuple(bool with_conditional, Names ends, bool in_parentheses) {
  const int line = current().line;
  auto tuple = std::make_unique<TupleExpr>(line);
  bool is_tuple = false;
  while (!at_tuple_end(ends)) {
    auto item = with_conditional ? parse_expression() : parse_logic(true);
    adopt(*tuple, item);
    tuple->items.push_back(std::move(item));
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!tuple->items.empty()) return std::move(tuple->items.front());
    if (!in_parentheses) unexpected("an expression");
  }
  return tuple;
}

ExprPtr Parser::parse_conditional() {
  const Nest nest(*this);
  const size_t num_unknown = unknown_.size();
  ExprPtr node = parse_logic(true);
  while (is_name("if")) {
    auto conditional = std::make_unique<ConditionalExpr>(next().line);
    conditional->then = std::move(node);
    conditional->test = parse_logic(true);
    if (skip_name("else")) conditional->otherwise = parse_conditional();
    adopt(*conditional, conditional->then);
    adopt(*conditional, conditional->test);
    adopt(*conditional, conditional->otherwise);
    unknown_.resize(num_unknown);
    node = std::move(conditional);
  }
  return node;
}

ExprPtr Parser::parse_logic(bool is_or) {
  ExprPtr first = is_or ? parse_logic(false) : parse_not();
  const std::string_view word = is_or ? "or" : "and";
  if (!is_name(word)) return first;
  auto logic = std::make_unique<LogicExpr>(first->line);
  logic->is_or = is_or;
  adopt(*logic, first);
  logic->parts.push_back(std::move(first));
  while (skip_name(word)) {
    ExprPtr part = is_or ? parse_logic(false) : parse_not();
    adopt(*logic, part);
    logic->parts.push_back(std::move(part));
  }
  return logic;
}

ExprPtr Parser::parse_not() {
  if (!is_name("not")) return parse_compare();
  const Nest nest(*this);
  auto node = std::make_unique<UnaryExpr>(next().line);
  node->op = '!';
  node->operand = parse_not();
  adopt(*node, node->operand);
  return node;
}

ExprPtr Parser::parse_compare() {
  static constexpr std::pair<std::string_view, Comparison> kOps[] = {
      {"==", Comparison::eq}, {"!=", Comparison::ne}, {"<", Comparison::lt},
      {"<=", Comparison::le}, {">", Comparison::gt},  {">=", Comparison::ge}};
  ExprPtr first = parse_sum();
  auto compare = std::make_unique<CompareExpr>(first->line);
  while (true) {
    bool found = false;
    Comparison op = Comparison::eq;
    if (is(TokenType::op)) {
      for (const auto& [text, value] : kOps) {
        if (current().text == text) {
          op = value;
          found = true;
        }
      }
      if (found) next();
    } else if (skip_name("in")) {
      op = Comparison::in;
      found = true;
    } else if (is_name("not") && ahead().type == TokenType::name && ahead().text == "in") {
      next();
      next();
      op = Comparison::not_in;
      found = true;
    }
    if (!found) break;
    ExprPtr operand = parse_sum();
    adopt(*compare, operand);
    compare->rest.emplace_back(op, std::move(operand));
  }
  if (compare->rest.empty()) return first;
  adopt(*compare, first);
  compare->first = std::move(first);
  return compare;
}

ExprPtr Parser::parse_sum() {
  ExprPtr first = parse_concat();
  if (!is_op("+") && !is_op("-")) return first;
  auto sum = std::make_unique<ArithmeticExpr>(first->line);
  adopt(*sum, first);
  sum->first = std::move(first);
  while (is_op("+") || is_op("-")) {
    const auto op = next().text == "+" ? Arithmetic::add : Arithmetic::sub;
    ExprPtr operand = parse_concat();
    adopt(*sum, operand);
    sum->rest.emplace_back(op, std::move(operand));
  }
  return sum;
}

ExprPtr Parser::parse_concat() {
  ExprPtr first = parse_product();
  if (!is_op("~")) return first;
  auto concat = std::make_unique<ConcatExpr>(first->line);
  adopt(*concat, first);
  concat->parts.push_back(std::move(first));
  while (skip_op("~")) {
    ExprPtr part = parse_product();
    adopt(*concat, part);
    concat->parts.push_back(std::move(part));
  }
  return concat;
}

ExprPtr Parser::parse_product() {
  static constexpr std::pair<std::string_view, Arithmetic> kOps[] = {{"*", Arithmetic::mul},
                                                                     {"/", Arithmetic::div},
                                                                     {"//", Arithmetic::floordiv},
                                                                     {"%", Arithmetic::mod}};
  ExprPtr first = parse_power();
  auto product = std::make_unique<ArithmeticExpr>(first->line);
  while (is(TokenType::op)) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const auto& entry) { return entry.first == current().text; });
    if (op == std::end(kOps)) break;
    next();
    ExprPtr operand = parse_power();
    adopt(*product, operand);
    product->rest.emplace_back(op->second, std::move(operand));
  }
  if (product->rest.empty()) return first;
  adopt(*product, first);
  product->first = std::move(first);
  return product;
}

ExprPtr Parser::parse_power() {
  ExprPtr first = parse_unary(true);
  if (!is_op("**")) return first;
  auto power = std::make_unique<ArithmeticExpr>(first->line);
  adopt(*power, first);
  power->first = std::move(first);
  while (skip_op("**")) {
    ExprPtr operand = parse_unary(true);
    adopt(*power, operand);
    power->rest.emplace_back(Arithmetic::pow, std::move(operand));
  }
  return power;
}

ExprPtr Parser::parse_unary(bool with_filter) {
  const Nest nest(*this);
  ExprPtr node;
  if (is_op("-") || is_op("+")) {
    auto unary = std::make_unique<UnaryExpr>(current().line);
    unary->op = next().text[0];
    unary->operand = parse_unary(false);
    adopt(*unary, unary->operand);
    node = std::move(unary);
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filters(std::move(node)) : std::move(node);
}

}  // namespace headrace::jinja
