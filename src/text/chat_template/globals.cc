// The functions a template finds among its variables.
#include "text/chat_template/interpreter.h"
#include "text/chat_template/strftime.h"

namespace headrace::jinja {

namespace {

Value global_range(Interpreter& in, const Value&, Args& args) {
  if (!args.named.empty()) fail("range() takes no keyword arguments");
  const Bound bound("range", args, {"start", "stop", "step"}, 1);
  Value range = bound.has(1)
                    ? in.make_range(bound.integer(0, 0), bound.integer(1, 0), bound.integer(2, 1))
                    : in.make_range(0, bound.integer(0, 0), 1);
  return std::move(range).with_taint(bound[0].tainted() || bound[1].tainted() ||
                                     bound[2].tainted());
}

/// What dict() and namespace() take: a mapping or pairs, and keywords.
Entries collect_entries(Interpreter& in, Args& args, std::string_view what) {
  Entries entries;
  if (args.positional.size() > 1) fail(std::string(what) + " expected at most 1 argument");
  const auto set = [&](Value key, Value value) {
    in.budget().step(1 + key.shape().weight);
    entries.set(std::move(key), std::move(value));
  };
  if (!args.positional.empty()) {
    const Value& given = args.positional[0];
    if (given.is(Kind::dict)) {
      for (const auto& [key, value] : given.as<Dict>().entries.all()) set(key, value);
    } else {
      for (const auto& pair : in.iterate(given)) {
        auto both = in.iterate(pair);
        if (both.size() != 2) fail(std::string(what) + ": expected pairs");
        set(std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (auto& [name, value] : args.named) set(in.make_string(name), std::move(value));
  return entries;
}

Value global_dict(Interpreter& in, const Value&, Args& args) {
  const bool tainted = !args.positional.empty() && args.positional[0].tainted();
  return in.make_dict(collect_entries(in, args, "dict")).with_taint(tainted);
}

Value global_namespace(Interpreter& in, const Value&, Args& args) {
  const Entries entries = collect_entries(in, args, "namespace");
  const Value space = in.make_space();
  for (const auto& [key, value] : entries.all()) {
    // Other keys could not be read back: attributes are named by strings.
    if (key.is_string()) in.set_attribute(space, key.text(), value);
  }
  return space;
}

struct Cycler : Function {
  Cycler(std::vector<Value> values, Shape of_items)
      : Function("cycler", of_items), items(std::move(values)) {}
  const std::vector<Value> items;
  mutable size_t position = 0;

  Value call(Interpreter&, Args&) const override { fail("'Cycler' object is not callable"); }
  bool attribute(Interpreter& in, std::string_view what, Value& out) const override;
};

Value cycler_next(Interpreter&, const Value& self, Args& args) {
  const Bound bound("next", args, {});
  const auto& cycler = self.as<Cycler>();
  const Value& item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

Value cycler_reset(Interpreter&, const Value& self, Args& args) {
  const Bound bound("reset", args, {});
  self.as<Cycler>().position = 0;
  return Value();
}

bool Cycler::attribute(Interpreter&, std::string_view what, Value& out) const {
  if (what != "current") return false;
  out = items[position];
  return true;
}

/// Gives a cycler its methods, which need the shared pointer that its own attribute() lacks.
struct CyclerValue : Function {
  CyclerValue(std::shared_ptr<const Cycler> of, Shape of_items)
      : Function("cycler", of_items), cycler(std::move(of)) {}
  const std::shared_ptr<const Cycler> cycler;

  Value call(Interpreter& in, Args& args) const override { return cycler->call(in, args); }
  bool attribute(Interpreter& in, std::string_view what, Value& out) const override {
    const Builtin body =
        what == "next" ? cycler_next : (what == "reset" ? cycler_reset : Builtin(nullptr));
    if (body == nullptr) return cycler->attribute(in, what, out);
    out = Value(Kind::function, std::make_shared<NativeFunction>(std::string(what), body,
                                                                 Value(Kind::function, cycler)));
    return true;
  }
};

Value global_cycler(Interpreter& in, const Value&, Args& args) {
  if (!args.named.empty()) fail("cycler() takes no keyword arguments");
  if (args.positional.empty()) fail("cycler: at least one item has to be provided");
  const Shape shape = in.shape_of(args.positional);
  auto cycler = std::make_shared<Cycler>(std::move(args.positional), shape);
  return Value(Kind::function, std::make_shared<CyclerValue>(std::move(cycler), shape));
}

struct Joiner : Function {
  Joiner(Value text, Shape of_items) : Function("joiner", of_items), separator(std::move(text)) {}
  const Value separator;
  mutable bool used = false;

  Value call(Interpreter& in, Args& args) const override {
    const Bound bound("joiner", args, {});
    if (used) return separator;
    used = true;
    return in.make_string("", true);
  }
};

Value global_joiner(Interpreter& in, const Value&, Args& args) {
  const Bound bound("joiner", args, {"sep"});
  const Value separator = bound.has(0) ? bound[0] : in.make_string(", ", true);
  const Shape shape = in.shape_of({separator});
  return Value(Kind::function, std::make_shared<Joiner>(separator, shape));
}

Value global_raise_exception(Interpreter& in, const Value&, Args& args) {
  const Bound bound("raise_exception", args, {"message"}, 1);
  throw Fault{ErrorCode::invalid_argument, in.to_text(bound[0]).bytes(), 0, true};
}

Value global_strftime_now(Interpreter& in, const Value&, Args& args) {
  const Bound bound("strftime_now", args, {"format"}, 1);
  const Text& format = need_string(bound[0], "strftime_now");
  constexpr size_t kLongest = 10000;
  if (format.size() > kLongest) fail_limit("strftime_now: the format is too long");
  return in.make_string(format_time(in.now_unix_seconds(), format.view()), format.all_trusted());
}

constexpr NamedBuiltin kGlobals[] = {
    {"range", global_range},
    {"dict", global_dict},
    {"namespace", global_namespace},
    {"cycler", global_cycler},
    {"joiner", global_joiner},
    {"raise_exception", global_raise_exception},
    {"strftime_now", global_strftime_now},
};

}  // namespace

void add_globals(Entries& context) {
  for (const auto& [name, function] : kGlobals) {
    context.set(
        Value(Kind::string, std::make_shared<String>(Text(std::string(name), true), nullptr)),
        Value(Kind::function,
              std::make_shared<NativeFunction>(std::string(name), function, Value())));
  }
}

}  // namespace headrace::jinja
