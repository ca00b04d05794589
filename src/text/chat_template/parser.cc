#include "text/chat_template/parser.h"

#include "text/chat_template/builtins.h"
#include "text/chat_template/parser_impl.h"

namespace headrace::jinja {

Body parse_template(std::string_view source, int32_t max_depth) {
  return Parser(tokenize(source), max_depth).parse();
}

Body Parser::parse() {
  Body body = parse_body({});
  if (!unknown_.empty()) throw unknown_.front();
  return body;
}

bool Parser::is_any_name(Names names) const {
  for (const auto name : names) {
    if (is_name(name)) return true;
  }
  return false;
}

bool Parser::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}

void Parser::unexpected(std::string_view expected) const {
  fail("expected " + std::string(expected) + ", found " + describe(current()), current().line);
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) unexpected("'" + std::string(op) + "'");
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) unexpected("'" + std::string(name) + "'");
}

std::string Parser::expect_identifier() {
  if (!is(TokenType::name)) unexpected("a name");
  return next().text;
}

void Parser::expect(TokenType type, std::string_view what) {
  if (!is(type)) unexpected(what);
  next();
}

void Parser::too_deep(int line) const {
  fail_limit("the template nests deeper than " + std::to_string(max_depth_) + " (max_depth)", line);
}

void Parser::adopt(Expr& node, const ExprPtr& child) const {
  if (child == nullptr) return;
  node.depth = std::max(node.depth, child->depth + 1);
  if (node.depth > max_depth_) too_deep(node.line);
}

Body Parser::parse_body(Names ends) {
  Body body;
  while (true) {
    const Token& token = current();
    switch (token.type) {
      case TokenType::data: {
        auto text = std::make_unique<TextStmt>(token.line);
        text->text = token.text;
        body.push_back(std::move(text));
        next();
        break;
      }
      case TokenType::variable_begin: {
        next();
        auto output = std::make_unique<OutputStmt>(token.line);
        output->value = parse_tuple(true, {}, false);
        expect(TokenType::variable_end, "end of print statement '}}'");
        body.push_back(std::move(output));
        break;
      }
      case TokenType::block_begin: {
        next();
        if (is_any_name(ends)) return body;
        if (is_name("print")) {
          parse_print(body);
        } else {
          body.push_back(parse_statement(ends));
        }
        expect(TokenType::block_end, "end of statement block '%}'");
        break;
      }
      default:
        if (ends.size() == 0) return body;
        std::string due;
        for (const auto end : ends) due += (due.empty() ? "'" : " or '") + std::string(end) + "'";
        unexpected(due);
    }
  }
}

StmtPtr Parser::parse_statement(Names ends) {
  const Nest nest(*this);
  if (!is(TokenType::name)) unexpected("a tag name");
  const Token& tag = current();
  if (tag.text == "set") return parse_set();
  if (tag.text == "for") return parse_for();
  if (tag.text == "if") return parse_if();
  if (tag.text == "macro") return parse_macro();
  if (tag.text == "call") return parse_call_block();
  if (tag.text == "filter") return parse_filter_block();
  if (tag.text == "with") return parse_with();
  if (tag.text == "block") return parse_block();
  if (tag.text == "generation") return parse_scope("endgeneration");
  if (tag.text == "autoescape") return parse_autoescape();
  if (tag.text == "break" || tag.text == "continue") {
    if (!in_loop_) fail("'" + tag.text + "' outside of a loop", tag.line);
    next();
    if (tag.text == "break") return std::make_unique<BreakStmt>(tag.line);
    return std::make_unique<ContinueStmt>(tag.line);
  }
  for (const auto* other : {"include", "import", "from", "extends", "do", "trans", "debug"}) {
    if (tag.text == other) {
      fail_unsupported("the tag '" + tag.text + "' is not supported in chat templates", tag.line);
    }
  }
  std::string due;
  for (const auto end : ends)
    due += (due.empty() ? "; expected '" : " or '") + std::string(end) + "'";
  fail("unknown tag '" + tag.text + "'" + due, tag.line);
}

void Parser::parse_print(Body& body) {
  next();
  for (bool first = true; !is(TokenType::block_end); first = false) {
    if (!first) expect_op(",");
    auto output = std::make_unique<OutputStmt>(current().line);
    output->value = parse_expression();
    body.push_back(std::move(output));
  }
}

Body Parser::parse_inner(Names ends, bool in_loop) {
  const bool was_conditional = conditional_, was_in_loop = in_loop_;
  conditional_ = false;
  in_loop_ = in_loop;
  skip_op(":");
  expect(TokenType::block_end, "end of statement block '%}'");
  Body body = parse_body(ends);
  conditional_ = was_conditional;
  in_loop_ = was_in_loop;
  return body;
}

StmtPtr Parser::parse_set() {
  const int line = next().line;
  Target target = parse_target({}, true);
  if (skip_op("=")) {
    auto set = std::make_unique<SetStmt>(line);
    set->target = std::move(target);
    set->value = parse_tuple(true, {}, false);
    return set;
  }
  auto block = std::make_unique<SetBlockStmt>(line);
  block->target = std::move(target);
  const bool was_conditional = conditional_;
  conditional_ = false;
  block->filter = parse_filter_chain(nullptr);
  conditional_ = was_conditional;
  block->body = parse_inner({"endset"}, in_loop_);
  next();
  return block;
}

StmtPtr Parser::parse_for() {
  auto loop = std::make_unique<ForStmt>(next().line);
  ++loop_nesting_;
  loop->target = parse_target({"in"}, false);
  --loop_nesting_;
  expect_name("in");
  loop->items = parse_tuple(false, {"recursive"}, false);
  if (skip_name("if")) {
    const bool was_conditional = conditional_;
    conditional_ = false;
    loop->condition = parse_expression();
    conditional_ = was_conditional;
  }
  loop->recursive = skip_name("recursive");
  ++loop_nesting_;
  loop->body = parse_inner({"endfor", "else"}, true);
  if (next().text == "else") {
    loop->otherwise = parse_inner({"endfor"}, in_loop_);
    next();
  }
  --loop_nesting_;
  return loop;
}

StmtPtr Parser::parse_if() {
  auto branch = std::make_unique<IfStmt>(next().line);
  const bool was_conditional = conditional_;
  conditional_ = true;
  const auto parse_branch_body = [&](Names ends) {
    skip_op(":");
    expect(TokenType::block_end, "end of statement block '%}'");
    return parse_body(ends);
  };
  while (true) {
    ExprPtr test = parse_tuple(false, {}, false);
    Body body = parse_branch_body({"elif", "else", "endif"});
    branch->branches.emplace_back(std::move(test), std::move(body));
    const std::string& word = next().text;
    if (word == "elif") continue;
    if (word == "else") {
      branch->otherwise = parse_branch_body({"endif"});
      next();
    }
    break;
  }
  conditional_ = was_conditional;
  return branch;
}

std::vector<Parameter> Parser::parse_signature() {
  std::vector<Parameter> parameters;
  const bool was_conditional = conditional_;
  conditional_ = false;
  expect_op("(");
  while (!is_op(")")) {
    if (!parameters.empty()) expect_op(",");
    const Token& token = current();
    Parameter parameter;
    parameter.name = expect_identifier();
    (void)name_target(token);
    if (skip_op("=")) {
      parameter.fallback = parse_expression();
    } else if (!parameters.empty() && parameters.back().fallback != nullptr) {
      fail("a parameter without a default follows one with a default", token.line);
    }
    parameters.push_back(std::move(parameter));
  }
  expect_op(")");
  conditional_ = was_conditional;
  return parameters;
}

void Parser::parse_macro_body(MacroStmt& macro, std::string_view end) {
  macros_.push_back(&macro);
  const int was_nesting = loop_nesting_;
  macro.body = parse_inner({end}, false);
  loop_nesting_ = was_nesting;
  next();
  macros_.pop_back();
  for (const auto& parameter : macro.parameters) {
    if (parameter.name == "varargs") macro.uses_varargs = false;
    if (parameter.name == "kwargs") macro.uses_kwargs = false;
    if (parameter.name == "caller" && macro.uses_caller && parameter.fallback == nullptr) {
      fail("the special parameter 'caller' needs a default", macro.line);
    }
  }
}

StmtPtr Parser::parse_macro() {
  auto macro = std::make_unique<MacroStmt>(next().line);
  const Token& token = current();
  macro->name = expect_identifier();
  (void)name_target(token);
  macro->parameters = parse_signature();
  parse_macro_body(*macro, "endmacro");
  return macro;
}

StmtPtr Parser::parse_call_block() {
  auto block = std::make_unique<CallBlockStmt>(next().line);
  block->caller = std::make_unique<MacroStmt>(block->line);
  if (is_op("(")) block->caller->parameters = parse_signature();
  ExprPtr call = parse_expression();
  if (call->kind != ExprKind::call) fail("expected a call after 'call'", block->line);
  block->call.reset(static_cast<CallExpr*>(call.release()));
  parse_macro_body(*block->caller, "endcall");
  return block;
}

StmtPtr Parser::parse_filter_block() {
  auto block = std::make_unique<FilterBlockStmt>(next().line);
  const bool was_conditional = conditional_;
  conditional_ = false;
  block->filter = parse_filter_chain(parse_filter(nullptr));
  conditional_ = was_conditional;
  block->body = parse_inner({"endfilter"}, in_loop_);
  next();
  return block;
}

StmtPtr Parser::parse_with() {
  auto with = std::make_unique<WithStmt>(next().line);
  while (!is(TokenType::block_end)) {
    if (!with->values.empty()) expect_op(",");
    Target target = parse_target({}, false);
    expect_op("=");
    ExprPtr value = parse_expression();
    with->values.emplace_back(std::move(target), std::move(value));
  }
  with->body = parse_inner({"endwith"}, in_loop_);
  next();
  return with;
}

StmtPtr Parser::parse_scope(std::string_view end) {
  auto scope = std::make_unique<ScopeStmt>(next().line);
  scope->body = parse_inner({end}, false);
  next();
  return scope;
}

StmtPtr Parser::parse_autoescape() {
  const int line = next().line;
  const ExprPtr value = parse_expression();
  if (value->kind != ExprKind::literal || truthy(static_cast<const LiteralExpr&>(*value).value)) {
    fail_unsupported("'autoescape' other than false is not supported in chat templates", line);
  }
  auto scope = std::make_unique<ScopeStmt>(line);
  scope->body = parse_inner({"endautoescape"}, in_loop_);
  next();
  return scope;
}

StmtPtr Parser::parse_block() {
  auto block = std::make_unique<BlockStmt>(next().line);
  const std::string name = expect_identifier();
  skip_name("scoped");
  skip_name("required");
  block->body = parse_inner({"endblock"}, false);
  next();
  skip_name(name);
  return block;
}

Target Parser::name_target(const Token& token) {
  for (const auto* word : {"true", "false", "none", "True", "False", "None"}) {
    if (token.text == word) fail("cannot assign to '" + token.text + "'", token.line);
  }
  Target target;
  target.name = token.text;
  return target;
}

Target Parser::parse_target_item(bool with_namespace) {
  const Nest nest(*this);
  if (skip_op("(")) {
    Target target = parse_target({}, false);
    expect_op(")");
    return target;
  }
  if (!is(TokenType::name)) unexpected("a name to assign to");
  const Token& token = next();
  Target target = name_target(token);
  if (with_namespace && skip_op(".")) {
    target.what = Target::What::attribute;
    target.attribute = expect_identifier();
  } else if (target.name == "loop" && loop_nesting_ > 0) {
    fail("cannot assign to the special variable 'loop' inside a loop", token.line);
  }
  return target;
}

Target Parser::parse_target(Names ends, bool with_namespace) {
  Target tuple;
  tuple.what = Target::What::tuple;
  bool is_tuple = false;
  while (!at_tuple_end(ends)) {
    tuple.items.push_back(parse_target_item(with_namespace));
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (tuple.items.empty()) unexpected("a name to assign to");
  Target only = std::move(tuple.items.front());
  return only;
}

}  // namespace headrace::jinja
