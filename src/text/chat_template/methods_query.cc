// Methods that ask something of a string, and those of lists, tuples, dicts and floats.
#include <algorithm>
#include <cmath>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/text_ops.h"
#include "text/chat_template/text_search.h"

namespace headrace::jinja {

namespace {

/// The part of a string that optional start and end arguments choose, and where it begins.
struct Window {
  std::string_view text;
  size_t begin = 0;
  bool valid = true;  ///< false where start lies past the end
};

Window window(Interpreter& in, const Value& self, const Bound& bound) {
  const auto& string = self.as<String>();
  const auto size = static_cast<int64_t>(string.num_chars);
  const auto clamp = [&](size_t i, int64_t otherwise) {
    if (bound[i].is(Kind::none)) return otherwise;
    int64_t at = bound.integer(i, otherwise);
    if (at < 0) at = std::max<int64_t>(0, at + size);
    return at;
  };
  in.budget().step_bytes(string.text.size());
  const int64_t start = clamp(1, 0);
  const int64_t end = std::min(clamp(2, size), size);
  if (start > end) return {{}, 0, false};
  const auto view = string.text.view();
  const size_t from = byte_offset(view, static_cast<size_t>(start));
  const size_t to = from + byte_offset(view.substr(from), static_cast<size_t>(end - start));
  return {view.substr(from, to - from), from, true};
}

template <bool from_right, bool must>
Value method_find(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("find", args, {"sub", "start", "end"}, 1);
  const auto part = need_string(bound[0], "find").view();
  const Window in_part = window(in, self, bound);
  TextSearch search(in.budget(), part);
  const size_t at = !in_part.valid ? std::string_view::npos
                    : from_right   ? search.rfind(in_part.text)
                                   : search.find(in_part.text);
  if (at == std::string_view::npos) {
    if (must) fail("substring not found");
    return Value::integer(-1);
  }
  return Value::integer(
      static_cast<int64_t>(count_code_points(self.view().substr(0, in_part.begin + at))));
}

Value method_count(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("count", args, {"sub", "start", "end"}, 1);
  const auto part = need_string(bound[0], "count").view();
  const Window in_part = window(in, self, bound);
  if (!in_part.valid) return Value::integer(0);
  if (part.empty()) {
    return Value::integer(static_cast<int64_t>(count_code_points(in_part.text)) + 1);
  }
  TextSearch search(in.budget(), part);
  int64_t count = 0;
  for (size_t at = 0; (at = search.find(in_part.text, at)) != std::string_view::npos;) {
    ++count;
    at += part.size();
  }
  return Value::integer(count);
}

template <bool at_end>
Value method_startswith(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("startswith", args, {"prefix", "start", "end"}, 1);
  const Window in_part = window(in, self, bound);
  const auto matches = [&](const Value& prefix) {
    const auto part = need_string(prefix, "startswith").view();
    return in_part.valid &&
           (at_end ? in_part.text.ends_with(part) : in_part.text.starts_with(part));
  };
  if (!bound[0].is(Kind::tuple)) return Value::boolean(matches(bound[0]));
  const auto& prefixes = bound[0].as<Sequence>().items;
  in.budget().step(static_cast<int64_t>(prefixes.size()));
  return Value::boolean(std::any_of(prefixes.begin(), prefixes.end(), matches));
}

template <bool (*holds)(int32_t)>
Value method_all(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("method", args, {});
  const auto view = self.view();
  in.budget().step_bytes(view.size());
  for (size_t at = 0; at < view.size();) {
    const auto c = decode_at(view, at);
    if (!holds(c.value)) return Value::boolean(false);
    at += c.length;
  }
  return Value::boolean(!view.empty());
}

Value method_isascii(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("isascii", args, {});
  in.budget().step_bytes(self.view().size());
  return Value::boolean(std::all_of(self.view().begin(), self.view().end(),
                                    [](char c) { return static_cast<signed char>(c) >= 0; }));
}

Value method_isprintable(Interpreter& in, const Value& self, Args& args) {
  if (self.view().empty()) return Value::boolean(true);
  return method_all<is_printable>(in, self, args);
}

Value method_isidentifier(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("isidentifier", args, {});
  if (self.view().empty()) return Value::boolean(false);
  const auto first = decode_at(self.view(), 0).value;
  if (first != '_' && !is_alpha(first)) return Value::boolean(false);
  return method_all<is_word>(in, self, args);
}

template <bool lower>
Value method_iscase(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("islower", args, {});
  Args none;
  return Value::boolean(in.apply_test(lower ? "lower" : "upper", self, none));
}

Value method_istitle(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("istitle", args, {});
  in.budget().step_bytes(self.view().size());
  bool some = false, after_cased = false;
  for (size_t at = 0; at < self.view().size();) {
    const auto c = decode_at(self.view(), at);
    const bool upper = is_upper(c.value) || is_title(c.value);
    if (upper ? after_cased : (is_lower(c.value) && !after_cased)) return Value::boolean(false);
    after_cased = upper || is_lower(c.value);
    some = some || after_cased;
    at += c.length;
  }
  return Value::boolean(some);
}

Value dict_get(Interpreter& in, const Value& self, Args& args) {
  if (!args.named.empty()) fail("dict.get() takes no keyword arguments");
  const Bound bound("get", args, {"key", "default"}, 1);
  in.budget().step(bound[0].shape().weight);
  const Value* found = self.as<Dict>().entries.find(bound[0]);
  return found != nullptr ? *found : bound[1];
}

template <View::What what>
Value dict_view(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("items", args, {});
  return in.make_view(what, self);
}

Value copy(Interpreter&, const Value& self, Args& args) {
  const Bound bound("copy", args, {});
  return self;
}

Value list_index(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("index", args, {"value", "start", "stop"}, 1);
  const auto items = in.iterate(self);
  const auto size = static_cast<int64_t>(items.size());
  const auto at = [&](size_t i, int64_t otherwise) {
    const int64_t index = bound.integer(i, otherwise);
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
  };
  for (int64_t i = at(1, 0); i < at(2, size); ++i) {
    if (in.equal(items[static_cast<size_t>(i)], bound[0])) return Value::integer(i);
  }
  fail("the value is not in the list");
}

Value list_count(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("count", args, {"value"}, 1);
  int64_t count = 0;
  for (const auto& item : in.iterate(self)) count += in.equal(item, bound[0]) ? 1 : 0;
  return Value::integer(count);
}

Value real_is_integer(Interpreter&, const Value& self, Args& args) {
  const Bound bound("is_integer", args, {});
  return Value::boolean(std::trunc(self.as_real()) == self.as_real());
}

}  // namespace

const std::vector<NamedBuiltin>& string_query_methods() {
  static const std::vector<NamedBuiltin> kTable = {
      {"find", method_find<false, false>},
      {"rfind", method_find<true, false>},
      {"index", method_find<false, true>},
      {"rindex", method_find<true, true>},
      {"count", method_count},
      {"startswith", method_startswith<false>},
      {"endswith", method_startswith<true>},
      {"isalpha", method_all<is_alpha>},
      {"isdigit", method_all<is_digit>},
      {"isdecimal", method_all<is_decimal>},
      {"isnumeric", method_all<is_numeric>},
      {"isalnum", method_all<is_alnum>},
      {"isspace", method_all<is_space>},
      {"isascii", method_isascii},
      {"isprintable", method_isprintable},
      {"isidentifier", method_isidentifier},
      {"islower", method_iscase<true>},
      {"isupper", method_iscase<false>},
      {"istitle", method_istitle},
  };
  return kTable;
}

const std::vector<NamedBuiltin>& container_methods(Kind kind) {
  static const std::vector<NamedBuiltin> kDict = {{"get", dict_get},
                                                  {"keys", dict_view<View::What::keys>},
                                                  {"values", dict_view<View::What::values>},
                                                  {"items", dict_view<View::What::items>},
                                                  {"copy", copy}};
  static const std::vector<NamedBuiltin> kList = {
      {"index", list_index}, {"count", list_count}, {"copy", copy}};
  static const std::vector<NamedBuiltin> kTuple = {{"index", list_index}, {"count", list_count}};
  static const std::vector<NamedBuiltin> kReal = {{"is_integer", real_is_integer}};
  switch (kind) {
    case Kind::dict:
      return kDict;
    case Kind::list:
      return kList;
    case Kind::real:
      return kReal;
    default:
      return kTuple;
  }
}

}  // namespace headrace::jinja
