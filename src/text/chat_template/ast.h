// The syntax tree of a template. Nodes know their line and how deep they nest; the parser refuses
// trees deeper than its limit, so that walking and destroying them needs a bounded stack.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_template/value.h"

namespace headrace::jinja {

enum class ExprKind : uint8_t {
  literal,
  name,
  list,
  tuple,
  dict,
  unary,
  arithmetic,
  concat,
  compare,
  logic,
  conditional,
  attribute,
  item,
  slice,
  call,
  filter,
  test
};

struct Expr {
  Expr(ExprKind expr_kind, int at_line) : kind(expr_kind), line(at_line) {}
  virtual ~Expr() = default;
  const ExprKind kind;
  const int line;
  int depth = 1;
};
using ExprPtr = std::unique_ptr<Expr>;

template <ExprKind K>
struct ExprOf : Expr {
  static constexpr ExprKind kKind = K;
  explicit ExprOf(int at_line) : Expr(K, at_line) {}
};

struct LiteralExpr : ExprOf<ExprKind::literal> {
  using ExprOf::ExprOf;
  Value value;
};
struct NameExpr : ExprOf<ExprKind::name> {
  using ExprOf::ExprOf;
  std::string name;
};
struct ListExpr : ExprOf<ExprKind::list> {
  using ExprOf::ExprOf;
  std::vector<ExprPtr> items;
};
struct TupleExpr : ExprOf<ExprKind::tuple> {
  using ExprOf::ExprOf;
  std::vector<ExprPtr> items;
};
struct DictExpr : ExprOf<ExprKind::dict> {
  using ExprOf::ExprOf;
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct UnaryExpr : ExprOf<ExprKind::unary> {
  using ExprOf::ExprOf;
  char op = '-';  ///< '-', '+' or '!' for not
  ExprPtr operand;
};
enum class Arithmetic : uint8_t { add, sub, mul, div, floordiv, mod, pow };
/// first op operand op operand ..., from the left.
struct ArithmeticExpr : ExprOf<ExprKind::arithmetic> {
  using ExprOf::ExprOf;
  ExprPtr first;
  std::vector<std::pair<Arithmetic, ExprPtr>> rest;
};
struct ConcatExpr : ExprOf<ExprKind::concat> {
  using ExprOf::ExprOf;
  std::vector<ExprPtr> parts;
};
enum class Comparison : uint8_t { eq, ne, lt, le, gt, ge, in, not_in };
struct CompareExpr : ExprOf<ExprKind::compare> {
  using ExprOf::ExprOf;
  ExprPtr first;
  std::vector<std::pair<Comparison, ExprPtr>> rest;
};
/// a or b or c; a and b and c.
struct LogicExpr : ExprOf<ExprKind::logic> {
  using ExprOf::ExprOf;
  bool is_or = false;
  std::vector<ExprPtr> parts;
};
struct ConditionalExpr : ExprOf<ExprKind::conditional> {
  using ExprOf::ExprOf;
  ExprPtr test, then, otherwise;  ///< `otherwise` may be absent
};
struct AttributeExpr : ExprOf<ExprKind::attribute> {
  using ExprOf::ExprOf;
  ExprPtr object;
  std::string name;
};
struct ItemExpr : ExprOf<ExprKind::item> {
  using ExprOf::ExprOf;
  ExprPtr object, index;
};
/// object[start:stop:step]; each bound may be absent.
struct SliceExpr : ExprOf<ExprKind::slice> {
  using ExprOf::ExprOf;
  ExprPtr object, start, stop, step;
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;  ///< *args, **kwargs
};
struct CallExpr : ExprOf<ExprKind::call> {
  using ExprOf::ExprOf;
  ExprPtr callee;
  Arguments arguments;
};
struct FilterExpr : ExprOf<ExprKind::filter> {
  using ExprOf::ExprOf;
  ExprPtr operand;  ///< absent in {% filter %} and {% set x | f %}: the captured text
  std::string name;
  Arguments arguments;
};
struct TestExpr : ExprOf<ExprKind::test> {
  using ExprOf::ExprOf;
  ExprPtr operand;
  std::string name;
  Arguments arguments;
};

/// What can be assigned to: a name, namespace.attribute, or a tuple of targets.
struct Target {
  enum class What : uint8_t { name, attribute, tuple };
  What what = What::name;
  std::string name, attribute;
  std::vector<Target> items;
};

enum class StmtKind : uint8_t {
  text,
  output,
  set,
  set_block,
  branch,
  loop,
  macro,
  call_block,
  filter_block,
  with,
  scope,
  block,
  break_,
  continue_
};

struct Stmt {
  Stmt(StmtKind stmt_kind, int at_line) : kind(stmt_kind), line(at_line) {}
  virtual ~Stmt() = default;
  const StmtKind kind;
  const int line;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

template <StmtKind K>
struct StmtOf : Stmt {
  static constexpr StmtKind kKind = K;
  explicit StmtOf(int at_line) : Stmt(K, at_line) {}
};

struct TextStmt : StmtOf<StmtKind::text> {
  using StmtOf::StmtOf;
  std::string text;
};
struct OutputStmt : StmtOf<StmtKind::output> {
  using StmtOf::StmtOf;
  ExprPtr value;
};
struct SetStmt : StmtOf<StmtKind::set> {
  using StmtOf::StmtOf;
  Target target;
  ExprPtr value;
};
struct SetBlockStmt : StmtOf<StmtKind::set_block> {
  using StmtOf::StmtOf;
  Target target;
  ExprPtr filter;  ///< a FilterExpr without an innermost operand, or absent
  Body body;
};
struct IfStmt : StmtOf<StmtKind::branch> {
  using StmtOf::StmtOf;
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct ForStmt : StmtOf<StmtKind::loop> {
  using StmtOf::StmtOf;
  Target target;
  ExprPtr items, condition;
  bool recursive = false;
  Body body, otherwise;
};
struct Parameter {
  std::string name;
  ExprPtr fallback;
};
struct MacroStmt : StmtOf<StmtKind::macro> {
  using StmtOf::StmtOf;
  std::string name;
  std::vector<Parameter> parameters;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  Body body;
};
struct CallBlockStmt : StmtOf<StmtKind::call_block> {
  using StmtOf::StmtOf;
  std::unique_ptr<MacroStmt> caller;
  std::unique_ptr<CallExpr> call;
};
struct FilterBlockStmt : StmtOf<StmtKind::filter_block> {
  using StmtOf::StmtOf;
  ExprPtr filter;
  Body body;
};
struct WithStmt : StmtOf<StmtKind::with> {
  using StmtOf::StmtOf;
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
};
/// {% generation %} and {% autoescape false %}: a body with its own variables.
struct ScopeStmt : StmtOf<StmtKind::scope> {
  using StmtOf::StmtOf;
  Body body;
};
/// {% block %}: rendered in place; sees the template's top-level variables only.
struct BlockStmt : StmtOf<StmtKind::block> {
  using StmtOf::StmtOf;
  Body body;
};
struct BreakStmt : StmtOf<StmtKind::break_> {
  using StmtOf::StmtOf;
};
struct ContinueStmt : StmtOf<StmtKind::continue_> {
  using StmtOf::StmtOf;
};

}  // namespace headrace::jinja
