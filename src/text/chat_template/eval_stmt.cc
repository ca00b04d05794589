// Statements: blocks, loops, macros, assignments.
#include "text/chat_template/interpreter.h"

namespace headrace::jinja {

namespace {

/// Sets a variable for as long as this lives.
template <class T>
class Swap {
 public:
  Swap(T& place, T value) : place_(place), old_(std::move(place)) { place_ = std::move(value); }
  ~Swap() { place_ = std::move(old_); }
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

 private:
  T& place_;
  T old_;
};

struct Macro : Function {
  Macro(const MacroStmt& stmt, std::shared_ptr<Scope> scope)
      : Function(stmt.name), statement(stmt), closure(std::move(scope)) {}
  const MacroStmt& statement;
  const std::shared_ptr<Scope> closure;

  Value call(Interpreter& in, Args& args) const override {
    return in.call_macro(statement, closure, args);
  }
  bool attribute(Interpreter& in, std::string_view what, Value& out) const override {
    if (what == "name") {
      out = in.make_string(name, true);
    } else if (what == "arguments") {
      std::vector<Value> names;
      for (const auto& p : statement.parameters) names.push_back(in.make_string(p.name, true));
      out = in.make_tuple(std::move(names));
    } else if (what == "caller") {
      out = Value::boolean(statement.uses_caller);
    } else if (what == "catch_kwargs") {
      out = Value::boolean(statement.uses_kwargs);
    } else if (what == "catch_varargs") {
      out = Value::boolean(statement.uses_varargs);
    } else {
      return false;
    }
    return true;
  }
};

}  // namespace

Text Interpreter::run(const Body& body) {
  TextBuilder out(budget_);
  const Swap<TextBuilder*> capture(out_, &out);
  exec(body);
  return out.take();
}

Interpreter::Flow Interpreter::exec(const Body& body) {
  for (const auto& stmt : body) {
    const Flow flow = exec(*stmt);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::exec(const Stmt& stmt) {
  const Deeper deeper(*this);
  budget_.step();
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::text:
      out_->append(static_cast<const TextStmt&>(stmt).text, true);
      break;
    case StmtKind::output:
      out_->append(to_text(eval(*static_cast<const OutputStmt&>(stmt).value)));
      break;
    case StmtKind::set: {
      const auto& set = static_cast<const SetStmt&>(stmt);
      check_spaces(set.target);
      assign(set.target, eval(*set.value));
      break;
    }
    case StmtKind::set_block: {
      const auto& set = static_cast<const SetBlockStmt&>(stmt);
      Value value;
      const Flow flow = exec_captured(set.body, set.filter, value);
      if (flow != Flow::normal) return flow;
      assign(set.target, std::move(value));
      break;
    }
    case StmtKind::branch:
      return exec_if(static_cast<const IfStmt&>(stmt));
    case StmtKind::loop:
      return exec_for(static_cast<const ForStmt&>(stmt));
    case StmtKind::macro:
      define_macro(static_cast<const MacroStmt&>(stmt));
      break;
    case StmtKind::call_block:
      exec_call_block(static_cast<const CallBlockStmt&>(stmt));
      break;
    case StmtKind::filter_block: {
      const auto& block = static_cast<const FilterBlockStmt&>(stmt);
      Value value;
      const Flow flow = exec_captured(block.body, block.filter, value);
      if (flow != Flow::normal) return flow;
      out_->append(to_text(value));
      break;
    }
    case StmtKind::with:
      return exec_with(static_cast<const WithStmt&>(stmt));
    case StmtKind::scope:
      return exec_in_scope(static_cast<const ScopeStmt&>(stmt).body);
    case StmtKind::block:
      exec_block(static_cast<const BlockStmt&>(stmt));
      break;
    case StmtKind::break_:
      return Flow::break_;
    case StmtKind::continue_:
      return Flow::continue_;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::exec_if(const IfStmt& stmt) {
  for (const auto& [test, body] : stmt.branches) {
    if (truthy(eval(*test))) return exec(body);
  }
  return exec(stmt.otherwise);
}

Interpreter::Flow Interpreter::exec_for(const ForStmt& stmt) {
  const Value items = eval(*stmt.items);
  return run_loop(stmt, items, 0);
}

std::vector<Value> Interpreter::loop_items(const ForStmt& stmt, const Value& items) {
  std::vector<Value> all = iterate(items);
  if (stmt.condition == nullptr) return all;
  std::vector<Value> kept;
  for (auto& item : all) {
    const Swap<std::shared_ptr<Scope>> scope(scope_, std::make_shared<Scope>(scope_));
    assign(stmt.target, item);
    if (truthy(eval(*stmt.condition))) kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::Flow Interpreter::run_loop(const ForStmt& stmt, const Value& items, int64_t depth0) {
  auto loop = std::make_shared<Loop>();
  loop->items = loop_items(stmt, items);
  loop->depth0 = depth0;
  if (stmt.recursive) {
    loop->statement = &stmt;
    loop->outer = scope_;
  }
  const Hold hold(&budget_, loop->items.size() * sizeof(Value));
  bool completed_one = false;
  for (; loop->index0 < loop->items.size(); ++loop->index0) {
    budget_.step();
    const Swap<std::shared_ptr<Scope>> scope(scope_, std::make_shared<Scope>(scope_));
    assign(stmt.target, loop->items[loop->index0]);
    set_variable("loop", Value(Kind::loop, loop));
    const Flow flow = exec(stmt.body);
    if (flow == Flow::break_) break;
    completed_one = completed_one || flow == Flow::normal;
  }
  // As in Jinja's compiled code, a turn cut short by break or continue does not count as one.
  if (completed_one || stmt.otherwise.empty()) return Flow::normal;
  return exec_in_scope(stmt.otherwise);
}

Interpreter::Flow Interpreter::exec_in_scope(const Body& body) {
  const Swap<std::shared_ptr<Scope>> scope(scope_, std::make_shared<Scope>(scope_));
  return exec(body);
}

Interpreter::Flow Interpreter::exec_with(const WithStmt& stmt) {
  auto inner = std::make_shared<Scope>(scope_);
  for (const auto& [target, expr] : stmt.values) {
    Value value = eval(*expr);
    const Swap<std::shared_ptr<Scope>> scope(scope_, inner);
    assign(target, std::move(value));
  }
  const Swap<std::shared_ptr<Scope>> scope(scope_, std::move(inner));
  return exec(stmt.body);
}

Interpreter::Flow Interpreter::exec_captured(const Body& body, const ExprPtr& filter, Value& out) {
  const Swap<std::shared_ptr<Scope>> scope(scope_, std::make_shared<Scope>(scope_));
  TextBuilder text(budget_);
  {
    const Swap<TextBuilder*> capture(out_, &text);
    const Flow flow = exec(body);
    if (flow != Flow::normal) return flow;
  }
  out = make_string(text.take());
  if (filter != nullptr) {
    const Value input = out;
    const Swap<const Value*> operand(captured_text_, &input);
    out = eval(*filter);
  }
  return Flow::normal;
}

void Interpreter::exec_block(const BlockStmt& stmt) {
  const Swap<std::shared_ptr<Scope>> scope(scope_, std::make_shared<Scope>(top_));
  exec(stmt.body);
}

Value Interpreter::make_macro(const MacroStmt& stmt) {
  for (auto scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) {
    scope->captured = true;
    budget_.take(sizeof(Scope) + 64);  // until the rendering ends, as the budget does
    captured_.push_back(scope);
  }
  return Value(Kind::function, std::make_shared<Macro>(stmt, scope_));
}

void Interpreter::define_macro(const MacroStmt& stmt) {
  set_variable(stmt.name, make_macro(stmt));
}

void Interpreter::exec_call_block(const CallBlockStmt& stmt) {
  const Value caller = make_macro(*stmt.caller);
  out_->append(to_text(eval_call(*stmt.call, &caller)));
}

Value Interpreter::call_macro(const MacroStmt& macro, const std::shared_ptr<Scope>& closure,
                              Args& args) {
  const Deeper deeper(*this);
  const std::string name = macro.name.empty() ? "caller" : "macro '" + macro.name + "'";
  const size_t num_parameters = macro.parameters.size();
  if (!macro.uses_varargs && args.positional.size() > num_parameters) {
    fail(name + " takes not more than " + std::to_string(num_parameters) + " argument(s)");
  }
  const Swap<std::shared_ptr<Scope>> scope(scope_, std::make_shared<Scope>(closure));
  std::vector<const Parameter*> missing;
  bool has_caller = false;
  for (size_t i = 0; i < num_parameters; ++i) {
    const auto& parameter = macro.parameters[i];
    has_caller = has_caller || parameter.name == "caller";
    if (i < args.positional.size()) {
      set_variable(parameter.name, args.positional[i]);
      continue;
    }
    const auto given = std::find_if(args.named.begin(), args.named.end(), [&](const auto& named) {
      return named.first.view() == parameter.name;
    });
    if (given == args.named.end()) {
      missing.push_back(&parameter);
      set_variable(parameter.name, make_undefined("'" + parameter.name + "' is undefined"));
    } else {
      set_variable(parameter.name, std::move(given->second));
      args.named.erase(given);
    }
  }
  if (macro.uses_caller && !has_caller) {
    Value caller = make_undefined("No caller defined");
    for (auto it = args.named.begin(); it != args.named.end(); ++it) {
      if (it->first.view() != "caller") continue;
      caller = std::move(it->second);
      args.named.erase(it);
      break;
    }
    set_variable("caller", std::move(caller));
  }
  if (macro.uses_kwargs) {
    Entries rest;
    for (auto& [key, value] : args.named) rest.set(make_string(key), std::move(value));
    set_variable("kwargs", make_dict(std::move(rest)));
  } else if (!args.named.empty()) {
    fail(name + " takes no keyword argument '" + args.named.front().first.bytes() + "'");
  }
  if (macro.uses_varargs) {
    const size_t num_used = std::min(num_parameters, args.positional.size());
    set_variable("varargs", make_tuple(std::vector<Value>(
                                args.positional.begin() + static_cast<std::ptrdiff_t>(num_used),
                                args.positional.end())));
  }
  for (const auto* parameter : missing) {
    set_variable(parameter->name,
                 parameter->fallback != nullptr
                     ? eval(*parameter->fallback)
                     : make_undefined("parameter '" + parameter->name + "' was not provided"));
  }
  TextBuilder text(budget_);
  const Swap<TextBuilder*> capture(out_, &text);
  exec(macro.body);
  return make_string(text.take());
}

Value Interpreter::call_loop(const Loop& loop, Args& args) {
  const Deeper deeper(*this);
  if (loop.statement == nullptr) {
    fail("the loop must have the 'recursive' marker to be called");
  }
  const Bound bound("loop", args, {"iterable"}, 1);
  const Swap<std::shared_ptr<Scope>> scope(scope_, loop.outer);
  TextBuilder text(budget_);
  const Swap<TextBuilder*> capture(out_, &text);
  run_loop(*loop.statement, bound[0], loop.depth0 + 1);
  return make_string(text.take());
}

void Interpreter::check_spaces(const Target& target) {
  for (const auto& item : target.items) check_spaces(item);
  if (target.what != Target::What::attribute) return;
  const Value* space = find_variable(target.name);
  if (space == nullptr || !space->is(Kind::space)) {
    fail("cannot assign attribute '" + target.attribute + "' on non-namespace object '" +
         target.name + "'");
  }
}

void Interpreter::assign(const Target& target, Value value) {
  switch (target.what) {
    case Target::What::name:
      set_variable(target.name, std::move(value));
      return;
    case Target::What::attribute: {
      const Value* space = find_variable(target.name);
      if (space == nullptr) fail("'" + target.name + "' is undefined");
      set_attribute(*space, Text(target.attribute, true), std::move(value));
      return;
    }
    case Target::What::tuple:
      break;
  }
  std::vector<Value> parts = iterate(value);
  if (parts.size() != target.items.size()) {
    fail(std::string(parts.size() < target.items.size() ? "not enough" : "too many") +
         " values to unpack: expected " + std::to_string(target.items.size()) + ", found " +
         std::to_string(parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) assign(target.items[i], std::move(parts[i]));
}

}  // namespace headrace::jinja
