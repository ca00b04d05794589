// Literals, names, and what follows them: subscripts, calls, filters and tests.
#include "text/chat_template/builtins.h"
#include "text/chat_template/parser_impl.h"

namespace headrace::jinja {

ExprPtr Parser::parse_primary() {
  const Token& token = current();
  if (is_op("(")) {
    next();
    ExprPtr node = parse_tuple(true, {}, true);
    expect_op(")");
    return node;
  }
  if (is_op("[")) return parse_list();
  if (is_op("{")) return parse_dict();
  auto literal = std::make_unique<LiteralExpr>(token.line);
  switch (token.type) {
    case TokenType::integer:
      literal->value = Value::integer(token.integer);
      break;
    case TokenType::real:
      literal->value = Value::real(token.real);
      break;
    case TokenType::string: {
      std::string text;
      for (; is(TokenType::string); next()) text += current().text;
      literal->value =
          Value(Kind::string, std::make_shared<String>(Text(std::move(text), true), nullptr));
      return literal;
    }
    case TokenType::name:
      if (token.text == "true" || token.text == "True") {
        literal->value = Value::boolean(true);
      } else if (token.text == "false" || token.text == "False") {
        literal->value = Value::boolean(false);
      } else if (token.text != "none" && token.text != "None") {
        auto name = std::make_unique<NameExpr>(token.line);
        name->name = token.text;
        for (auto* macro : macros_) {
          macro->uses_caller = macro->uses_caller || token.text == "caller";
          macro->uses_varargs = macro->uses_varargs || token.text == "varargs";
          macro->uses_kwargs = macro->uses_kwargs || token.text == "kwargs";
        }
        next();
        return name;
      }
      break;
    default:
      unexpected("an expression");
  }
  next();
  return literal;
}

ExprPtr Parser::parse_list() {
  auto list = std::make_unique<ListExpr>(next().line);
  while (!is_op("]")) {
    ExprPtr item = parse_expression();
    adopt(*list, item);
    list->items.push_back(std::move(item));
    if (!is_op("]")) expect_op(",");
  }
  next();
  return list;
}

ExprPtr Parser::parse_dict() {
  auto dict = std::make_unique<DictExpr>(next().line);
  while (!is_op("}")) {
    ExprPtr key = parse_expression();
    expect_op(":");
    ExprPtr value = parse_expression();
    adopt(*dict, key);
    adopt(*dict, value);
    dict->items.emplace_back(std::move(key), std::move(value));
    if (!is_op("}")) expect_op(",");
  }
  next();
  return dict;
}

ExprPtr Parser::parse_postfix(ExprPtr node) {
  while (true) {
    if (is_op(".") || is_op("[")) {
      node = parse_subscript(std::move(node));
    } else if (is_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::parse_filters(ExprPtr node) {
  while (true) {
    if (is_op("|")) {
      node = parse_filter_chain(std::move(node));
    } else if (is_name("is")) {
      node = parse_test(std::move(node));
    } else if (is_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::parse_subscript(ExprPtr node) {
  const int line = current().line;
  if (skip_op(".")) {
    if (is(TokenType::name)) {
      auto attribute = std::make_unique<AttributeExpr>(line);
      adopt(*attribute, node);
      attribute->object = std::move(node);
      attribute->name = next().text;
      return attribute;
    }
    if (!is(TokenType::integer)) unexpected("a name or number after '.'");
    auto index = std::make_unique<LiteralExpr>(line);
    index->value = Value::integer(next().integer);
    auto item = std::make_unique<ItemExpr>(line);
    adopt(*item, node);
    item->object = std::move(node);
    item->index = std::move(index);
    return item;
  }
  expect_op("[");
  auto slice = std::make_unique<SliceExpr>(line);
  bool is_slice = false;
  ExprPtr first;
  if (!is_op(":")) first = parse_expression();
  if (is_op(",")) {
    auto tuple = std::make_unique<TupleExpr>(line);
    adopt(*tuple, first);
    tuple->items.push_back(std::move(first));
    while (skip_op(",")) {
      ExprPtr item = parse_expression();
      adopt(*tuple, item);
      tuple->items.push_back(std::move(item));
    }
    first = std::move(tuple);
  } else if (skip_op(":")) {
    is_slice = true;
    slice->start = std::move(first);
    if (!is_op("]") && !is_op(":")) slice->stop = parse_expression();
    if (skip_op(":") && !is_op("]")) slice->step = parse_expression();
  }
  expect_op("]");
  if (is_slice) {
    for (const auto* part : {&slice->start, &slice->stop, &slice->step, &node})
      adopt(*slice, *part);
    slice->object = std::move(node);
    return slice;
  }
  auto item = std::make_unique<ItemExpr>(line);
  adopt(*item, node);
  adopt(*item, first);
  item->object = std::move(node);
  item->index = std::move(first);
  return item;
}

ExprPtr Parser::parse_call(ExprPtr node) {
  auto call = std::make_unique<CallExpr>(current().line);
  adopt(*call, node);
  call->callee = std::move(node);
  call->arguments = parse_arguments(*call);
  return call;
}

Arguments Parser::parse_arguments(Expr& owner) {
  Arguments arguments;
  const int line = current().line;
  const auto check_order = [&](bool right) {
    if (!right) fail("wrong order of arguments in a call", line);
  };
  expect_op("(");
  while (!is_op(")")) {
    if (is_op("*")) {
      check_order(arguments.star == nullptr && arguments.star_star == nullptr);
      next();
      arguments.star = parse_expression();
      adopt(owner, arguments.star);
    } else if (is_op("**")) {
      check_order(arguments.star_star == nullptr);
      next();
      arguments.star_star = parse_expression();
      adopt(owner, arguments.star_star);
    } else if (is(TokenType::name) && ahead().type == TokenType::op && ahead().text == "=") {
      check_order(arguments.star_star == nullptr);
      std::string name = next().text;
      next();
      for (const auto& [other, value] : arguments.named) {
        if (other == name) fail("repeated argument '" + name + "'", line);
      }
      ExprPtr value = parse_expression();
      adopt(owner, value);
      arguments.named.emplace_back(std::move(name), std::move(value));
    } else {
      check_order(arguments.star == nullptr && arguments.star_star == nullptr &&
                  arguments.named.empty());
      arguments.positional.push_back(parse_expression());
      adopt(owner, arguments.positional.back());
    }
    if (!is_op(")")) expect_op(",");
  }
  next();
  return arguments;
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_identifier();
  while (skip_op(".")) name += "." + expect_identifier();
  return name;
}

void Parser::check_known(bool known, std::string_view what, const std::string& name, int line) {
  if (known || conditional_) return;
  unknown_.push_back(
      {ErrorCode::unsupported, "no " + std::string(what) + " named '" + name + "'", line, false});
}

ExprPtr Parser::parse_filter(ExprPtr node) {
  auto filter = std::make_unique<FilterExpr>(current().line);
  adopt(*filter, node);
  filter->operand = std::move(node);
  filter->name = parse_dotted_name();
  if (is_op("(")) filter->arguments = parse_arguments(*filter);
  check_known(find_filter(filter->name) != nullptr, "filter", filter->name, filter->line);
  return filter;
}

ExprPtr Parser::parse_filter_chain(ExprPtr node) {
  while (skip_op("|")) node = parse_filter(std::move(node));
  return node;
}

ExprPtr Parser::parse_test(ExprPtr node) {
  const int line = next().line;
  const bool negated = skip_name("not");
  auto test = std::make_unique<TestExpr>(line);
  adopt(*test, node);
  test->operand = std::move(node);
  test->name = parse_dotted_name();
  const bool has_operand = is(TokenType::string) || is(TokenType::integer) || is(TokenType::real) ||
                           is_op("[") || is_op("{") ||
                           (is(TokenType::name) && !is_any_name({"else", "or", "and"}));
  if (is_op("(")) {
    test->arguments = parse_arguments(*test);
  } else if (has_operand) {
    if (is_name("is")) fail("tests cannot be chained with 'is'", current().line);
    ExprPtr operand = parse_postfix(parse_primary());
    adopt(*test, operand);
    test->arguments.positional.push_back(std::move(operand));
  }
  check_known(find_test(test->name) != nullptr, "test", test->name, line);
  if (!negated) return test;
  auto inverse = std::make_unique<UnaryExpr>(line);
  inverse->op = '!';
  inverse->operand = std::move(test);
  adopt(*inverse, inverse->operand);
  return inverse;
}

}  // namespace headrace::jinja
