// The interpreter's life, and how it makes values under its budget.
#include <algorithm>

#include "text/chat_template/interpreter.h"

namespace headrace::jinja {

Interpreter::Interpreter(Budget& budget, int64_t now_unix_seconds, Entries context)
    : budget_(budget),
      now_(now_unix_seconds),
      // Each syntactic level and each call takes a few levels of evaluation.
      max_depth_(std::max(1, budget.max_depth()) * 4),
      context_(std::move(context)),
      top_(std::make_shared<Scope>(nullptr)),
      scope_(top_) {}

Interpreter::~Interpreter() {
  for (const auto& scope : captured_) scope->variables.clear();
  for (const auto& space : spaces_) static_cast<const Space&>(*space).attributes.clear();
  for (const auto& loop : loops_) static_cast<const Loop&>(*loop).last_changed.clear();
}

Value Interpreter::make_string(Text text) {
  budget_.step_bytes(text.size());  // its code points are counted
  return Value(Kind::string, std::make_shared<String>(std::move(text), &budget_));
}

Shape Interpreter::shape_of(const std::vector<Value>& items) {
  Shape shape;
  for (const auto& item : items) shape.add(item);
  if (shape.depth > budget_.max_depth()) fail_limit("values nest too deeply (max_depth)");
  budget_.step(static_cast<int64_t>(items.size() / 16));
  return shape;
}

Value Interpreter::make_list(std::vector<Value> items) {
  const Shape shape = shape_of(items);
  return Value(Kind::list, std::make_shared<Sequence>(std::move(items), shape, &budget_));
}

Value Interpreter::make_tuple(std::vector<Value> items) {
  const Shape shape = shape_of(items);
  return Value(Kind::tuple, std::make_shared<Sequence>(std::move(items), shape, &budget_));
}

Value Interpreter::make_group(Value key, Value items) {
  std::vector<Value> both{std::move(key), std::move(items)};
  const Shape shape = shape_of(both);
  auto group = std::make_shared<Sequence>(std::move(both), shape, &budget_);
  group->is_group = true;
  return Value(Kind::tuple, std::move(group));
}

Value Interpreter::make_iterator(std::vector<Value> items) {
  const Shape shape = shape_of(items);
  return Value(Kind::iterator, std::make_shared<Iterator>(std::move(items), shape, &budget_));
}

Value Interpreter::make_dict(Entries entries) {
  Shape shape;
  for (const auto& [key, value] : entries.all()) {
    shape.add(key);
    shape.add(value);
  }
  if (shape.depth > budget_.max_depth()) fail_limit("values nest too deeply (max_depth)");
  budget_.step(static_cast<int64_t>(entries.size() / 16));
  return Value(Kind::dict, std::make_shared<Dict>(std::move(entries), shape, &budget_));
}

Value Interpreter::make_view(View::What what, const Value& dict) {
  return Value(Kind::view, std::make_shared<View>(what, dict)).with_taint(dict.tainted());
}

Value Interpreter::make_range(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) fail("range() arg 3 must not be zero");
  // Unsigned differences: the bounds may be the ends of int64.
  const bool up = step > 0;
  uint64_t count = 0;
  if (up ? start < stop : start > stop) {
    const auto span = up ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                         : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
    const auto by = up ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
    count = (span - 1) / by + 1;
  }
  constexpr uint64_t kMaxRange = 100000;  // Jinja's sandbox
  if (count > kMaxRange) {
    fail_limit("range too big: expected at most " + std::to_string(kMaxRange) + " items, found " +
               std::to_string(count));
  }
  return Value(Kind::range,
               std::make_shared<Range>(start, stop, step, static_cast<int64_t>(count)));
}

Value Interpreter::make_space() {
  budget_.take(sizeof(Space) + 64);
  auto space = std::make_shared<Space>();
  spaces_.push_back(space);
  return Value(Kind::space, std::move(space));
}

Value Interpreter::make_undefined(std::string message, bool unsafe) {
  return Value(Kind::undefined, std::make_shared<Undefined>(std::move(message), unsafe));
}

Value Interpreter::set_attribute(const Value& space, Text name, Value value) {
  if (!space.is(Kind::space)) fail("cannot assign attribute on non-namespace object");
  auto& attributes = space.as<Space>().attributes;
  if (attributes.find(name.view()) == nullptr) budget_.take(2 * sizeof(Value) + name.size() + 64);
  attributes.set(make_string(std::move(name)), value);
  return value;
}

}  // namespace headrace::jinja
