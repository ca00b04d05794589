// Runs a syntax tree. Owns the variables of one rendering, its limits and every operation on values
// that can fail, allocate or call back into the template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/ast.h"
#include "text/chat_template/builtins.h"

namespace headrace::jinja {

/// Variables of one block. A block sees its parents' variables and sets its own.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;  // a macro holds it: lives until the rendering ends
};

/// The `loop` of a for block.
struct Loop : Object {
  std::vector<Value> items;
  mutable size_t index0 = 0;
  int64_t depth0 = 0;
  const ForStmt* statement = nullptr;  ///< of a recursive loop
  std::shared_ptr<Scope> outer;        ///< of a recursive loop
  mutable std::vector<Value> last_changed;
  mutable bool has_changed = false;
};

class Interpreter {
 public:
  /// `context`: the variables given, with the global functions. `source` outlives this.
  Interpreter(Budget& budget, int64_t now_unix_seconds, Entries context);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Text run(const Body& body);
  int line() const { return line_; }
  int64_t now_unix_seconds() const { return now_; }
  Budget& budget() { return budget_; }

  // Making values.
  Value make_string(Text text);
  Value make_string(std::string bytes, bool trusted) {
    return make_string(Text(std::move(bytes), trusted));
  }
  Value make_list(std::vector<Value> items);
  Value make_tuple(std::vector<Value> items);
  Value make_group(Value key, Value items);
  Value make_iterator(std::vector<Value> items);
  Value make_dict(Entries entries);
  Value make_view(View::What what, const Value& dict);
  Value make_range(int64_t start, int64_t stop, int64_t step);
  Value make_space();
  Value make_undefined(std::string message, bool unsafe = false);
  /// Refuses values that nest too deeply.
  Shape shape_of(const std::vector<Value>& items);

  // Python's operations.
  Value arithmetic(Arithmetic op, const Value& a, const Value& b);
  Value negate(const Value& value, char op);
  bool compare(Comparison op, const Value& a, const Value& b);
  bool equal(const Value& a, const Value& b);
  bool less(const Value& a, const Value& b);
  bool contains(const Value& container, const Value& item);
  /// a.name and a[key]; undefined where there is none.
  Value attribute(const Value& object, std::string_view name);
  Value item(const Value& object, const Value& key);
  /// Only what getattr finds (methods and the like, not keys).
  bool own_attribute(const Value& object, std::string_view name, Value& out);
  Value slice(const Value& object, const Value* start, const Value* stop, const Value* step);
  Value call(const Value& callee, Args& args);
  /// What a for loop would see. Fails on what cannot be iterated; uses an iterator up.
  std::vector<Value> iterate(const Value& value);
  int64_t length(const Value& value);
  /// str(value), keeping provenance; marked-up text stays so if `keep_markup`.
  Text to_text(const Value& value, bool keep_markup = false);
  /// repr(value).
  Text to_repr(const Value& value);
  Value set_attribute(const Value& space, Text name, Value value);

  /// Named filters and tests, called by map, select and the like.
  Value apply_filter(const std::string& name, const Value& value, Args& args);
  bool apply_test(const std::string& name, const Value& value, Args& args);

  // Used by callable values.
  Value call_macro(const MacroStmt& macro, const std::shared_ptr<Scope>& closure, Args& args);
  Value call_loop(const Loop& loop, Args& args);
  bool loop_changed(const std::shared_ptr<const Object>& loop, Args& args);

  /// Counts one level of recursion for as long as it lives.
  class Deeper {
   public:
    explicit Deeper(Interpreter& in) : in_(in) {
      if (++in_.depth_ > in_.max_depth_) {
        --in_.depth_;
        fail_limit("the template's calls and blocks nest too deeply (max_depth)");
      }
    }
    ~Deeper() { --in_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Interpreter& in_;
  };

 private:
  enum class Flow : uint8_t { normal, break_, continue_ };

  // Statements (eval_stmt.cc).
  Flow exec(const Body& body);
  Flow exec(const Stmt& stmt);
  Flow exec_if(const IfStmt& stmt);
  Flow exec_for(const ForStmt& stmt);
  Flow run_loop(const ForStmt& stmt, const Value& items, int64_t depth0);
  Flow exec_with(const WithStmt& stmt);
  Flow exec_in_scope(const Body& body);
  Flow exec_captured(const Body& body, const ExprPtr& filter, Value& out);
  void exec_call_block(const CallBlockStmt& stmt);
  void exec_block(const BlockStmt& stmt);
  void define_macro(const MacroStmt& stmt);
  Value make_macro(const MacroStmt& stmt);
  void assign(const Target& target, Value value);
  void check_spaces(const Target& target);
  std::vector<Value> loop_items(const ForStmt& stmt, const Value& items);

  // Expressions (eval_expr.cc).
  Value eval(const Expr& expr);
  Value eval_name(const NameExpr& expr);
  Value eval_items(const std::vector<ExprPtr>& items, bool is_tuple);
  Value eval_dict(const DictExpr& expr);
  Value eval_arithmetic(const ArithmeticExpr& expr);
  Value eval_concat(const ConcatExpr& expr);
  Value eval_compare(const CompareExpr& expr);
  Value eval_logic(const LogicExpr& expr);
  Value eval_conditional(const ConditionalExpr& expr);
  Value eval_slice(const SliceExpr& expr);
  Value eval_call(const CallExpr& expr, const Value* caller);
  Value eval_filter(const FilterExpr& expr);
  Value eval_test(const TestExpr& expr);
  Args eval_arguments(const Arguments& arguments);

  // Variables.
  const Value* find_variable(std::string_view name);
  void set_variable(std::string_view name, Value value);

  bool loop_attribute(const Value& loop, std::string_view name, Value& out);

  Budget& budget_;
  int64_t now_;
  int32_t depth_ = 0;
  int32_t max_depth_;
  int line_ = 0;
  Entries context_;
  std::shared_ptr<Scope> top_, scope_;
  TextBuilder* out_ = nullptr;
  const Value* captured_text_ = nullptr;  // what a filter without operand works on
  // Values that can come to hold themselves, emptied at the end.
  std::vector<std::shared_ptr<Scope>> captured_;
  std::vector<std::shared_ptr<const Object>> spaces_, loops_;
};

}  // namespace headrace::jinja
