// Expressions.
#include "text/chat_template/interpreter.h"

namespace headrace::jinja {

Value Interpreter::eval(const Expr& expr) {
  const Deeper deeper(*this);
  budget_.step();
  line_ = expr.line;
  switch (expr.kind) {
    case ExprKind::literal:
      return static_cast<const LiteralExpr&>(expr).value;
    case ExprKind::name:
      return eval_name(static_cast<const NameExpr&>(expr));
    case ExprKind::list:
      return eval_items(static_cast<const ListExpr&>(expr).items, false);
    case ExprKind::tuple:
      return eval_items(static_cast<const TupleExpr&>(expr).items, true);
    case ExprKind::dict:
      return eval_dict(static_cast<const DictExpr&>(expr));
    case ExprKind::unary: {
      const auto& unary = static_cast<const UnaryExpr&>(expr);
      const Value operand = eval(*unary.operand);
      return unary.op == '!' ? Value::boolean(!truthy(operand)) : negate(operand, unary.op);
    }
    case ExprKind::arithmetic:
      return eval_arithmetic(static_cast<const ArithmeticExpr&>(expr));
    case ExprKind::concat:
      return eval_concat(static_cast<const ConcatExpr&>(expr));
    case ExprKind::compare:
      return eval_compare(static_cast<const CompareExpr&>(expr));
    case ExprKind::logic:
      return eval_logic(static_cast<const LogicExpr&>(expr));
    case ExprKind::conditional:
      return eval_conditional(static_cast<const ConditionalExpr&>(expr));
    case ExprKind::attribute: {
      const auto& get = static_cast<const AttributeExpr&>(expr);
      const Value object = eval(*get.object);
      return attribute(object, get.name);
    }
    case ExprKind::item: {
      const auto& get = static_cast<const ItemExpr&>(expr);
      const Value object = eval(*get.object);
      const Value index = eval(*get.index);
      return item(object, index);
    }
    case ExprKind::slice:
      return eval_slice(static_cast<const SliceExpr&>(expr));
    case ExprKind::call:
      return eval_call(static_cast<const CallExpr&>(expr), nullptr);
    case ExprKind::filter:
      return eval_filter(static_cast<const FilterExpr&>(expr));
    case ExprKind::test:
      return eval_test(static_cast<const TestExpr&>(expr));
  }
  return Value();
}

const Value* Interpreter::find_variable(std::string_view name) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    budget_.step(static_cast<int64_t>(scope->variables.size() / 16));
    for (const auto& [key, value] : scope->variables) {
      if (key == name) return &value;
    }
  }
  return context_.find(name);
}

void Interpreter::set_variable(std::string_view name, Value value) {
  budget_.step(static_cast<int64_t>(scope_->variables.size() / 16));
  for (auto& [key, old] : scope_->variables) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(name, std::move(value));
}

Value Interpreter::eval_name(const NameExpr& expr) {
  const Value* value = find_variable(expr.name);
  return value != nullptr ? *value : make_undefined("'" + expr.name + "' is undefined");
}

Value Interpreter::eval_items(const std::vector<ExprPtr>& items, bool is_tuple) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(eval(*item));
  return is_tuple ? make_tuple(std::move(values)) : make_list(std::move(values));
}

Value Interpreter::eval_dict(const DictExpr& expr) {
  Entries entries;
  for (const auto& [key_expr, value_expr] : expr.items) {
    Value key = eval(*key_expr);
    Value value = eval(*value_expr);
    budget_.step(key.shape().weight);
    entries.set(std::move(key), std::move(value));
  }
  return make_dict(std::move(entries));
}

Value Interpreter::eval_arithmetic(const ArithmeticExpr& expr) {
  Value result = eval(*expr.first);
  for (const auto& [op, operand] : expr.rest) {
    const Value right = eval(*operand);
    result = arithmetic(op, result, right);
  }
  return result;
}

Value Interpreter::eval_concat(const ConcatExpr& expr) {
  TextBuilder text(budget_);
  std::vector<Value> values;
  values.reserve(expr.parts.size());
  for (const auto& part : expr.parts) values.push_back(eval(*part));
  for (const auto& value : values) text.append(to_text(value));
  return make_string(text.take());
}

Value Interpreter::eval_compare(const CompareExpr& expr) {
  Value left = eval(*expr.first);
  for (const auto& [op, operand] : expr.rest) {
    Value right = eval(*operand);
    if (!compare(op, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::eval_logic(const LogicExpr& expr) {
  Value value;
  for (const auto& part : expr.parts) {
    value = eval(*part);
    if (truthy(value) == expr.is_or) return value;
  }
  return value;
}

Value Interpreter::eval_conditional(const ConditionalExpr& expr) {
  if (truthy(eval(*expr.test))) return eval(*expr.then);
  if (expr.otherwise != nullptr) return eval(*expr.otherwise);
  return make_undefined("the inline if-expression on line " + std::to_string(expr.line) +
                        " evaluated to false and has no else section");
}

Value Interpreter::eval_slice(const SliceExpr& expr) {
  const Value object = eval(*expr.object);
  Value bounds[3];
  const Value* given[3] = {nullptr, nullptr, nullptr};
  const ExprPtr* exprs[3] = {&expr.start, &expr.stop, &expr.step};
  for (int i = 0; i < 3; ++i) {
    if (*exprs[i] == nullptr) continue;
    bounds[i] = eval(**exprs[i]);
    given[i] = &bounds[i];
  }
  return slice(object, given[0], given[1], given[2]);
}

Args Interpreter::eval_arguments(const Arguments& arguments) {
  Args args;
  for (const auto& expr : arguments.positional) args.positional.push_back(eval(*expr));
  for (const auto& [name, expr] : arguments.named) {
    args.named.emplace_back(Text(name, true), eval(*expr));
  }
  if (arguments.star != nullptr) {
    for (auto& value : iterate(eval(*arguments.star))) args.positional.push_back(std::move(value));
  }
  if (arguments.star_star != nullptr) {
    const Value more = eval(*arguments.star_star);
    if (!more.is(Kind::dict)) fail("the argument after ** must be a mapping");
    for (const auto& [key, value] : more.as<Dict>().entries.all()) {
      if (!key.is_string()) fail("keywords must be strings");
      budget_.step(1 + static_cast<int64_t>(args.named.size() / 16));
      for (const auto& named : args.named) {
        if (named.first.view() == key.view()) {
          fail("repeated argument '" + named.first.bytes() + "'");
        }
      }
      args.named.emplace_back(key.text(), value);
    }
  }
  return args;
}

Value Interpreter::eval_call(const CallExpr& expr, const Value* caller) {
  const Value callee = eval(*expr.callee);
  Args args = eval_arguments(expr.arguments);
  if (caller != nullptr) args.named.emplace_back(Text("caller", true), *caller);
  line_ = expr.line;
  return call(callee, args);
}

Value Interpreter::call(const Value& callee, Args& args) {
  const Deeper deeper(*this);
  if (callee.is_undefined()) fail_undefined(callee);
  if (callee.is(Kind::function)) return callee.as<Function>().call(*this, args);
  if (callee.is(Kind::loop)) return call_loop(callee.as<Loop>(), args);
  fail("'" + std::string(type_name(callee)) + "' object is not callable");
}

Value Interpreter::eval_filter(const FilterExpr& expr) {
  const Value operand = expr.operand != nullptr ? eval(*expr.operand) : *captured_text_;
  Args args = eval_arguments(expr.arguments);
  line_ = expr.line;
  return apply_filter(expr.name, operand, args);
}

Value Interpreter::eval_test(const TestExpr& expr) {
  const Value operand = eval(*expr.operand);
  Args args = eval_arguments(expr.arguments);
  line_ = expr.line;
  return Value::boolean(apply_test(expr.name, operand, args));
}

Value Interpreter::apply_filter(const std::string& name, const Value& value, Args& args) {
  const Deeper deeper(*this);
  const Builtin filter = find_filter(name);
  if (filter == nullptr) {
    throw Fault{ErrorCode::unsupported, "no filter named '" + name + "'", 0, false};
  }
  budget_.step();
  return filter(*this, value, args);
}

bool Interpreter::apply_test(const std::string& name, const Value& value, Args& args) {
  const Deeper deeper(*this);
  const Test test = find_test(name);
  if (test == nullptr) {
    throw Fault{ErrorCode::unsupported, "no test named '" + name + "'", 0, false};
  }
  budget_.step();
  return test(*this, value, args);
}

}  // namespace headrace::jinja
