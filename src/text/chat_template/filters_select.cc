// Filters that apply an attribute, a filter or a test to each item.
#include <charconv>

#include "text/chat_template/item_path.h"
#include "text/chat_template/text_ops.h"

namespace headrace::jinja {

ItemPath::ItemPath(Interpreter& in, const Value& attribute) {
  if (attribute.is(Kind::none)) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  const Text dot(".", true);
  for (const auto& span : split_text(in.budget(), attribute.text(), &dot, -1, false)) {
    const auto part = attribute.view().substr(span.begin, span.end - span.begin);
    int64_t index = 0;
    const auto done = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = !part.empty() && part[0] != '-' && done.ec == std::errc() &&
                          done.ptr == part.data() + part.size();
    parts_.push_back(is_index ? Value::integer(index)
                              : in.make_string(attribute.text().slice(span.begin, span.end)));
  }
}

Value ItemPath::get(Interpreter& in, Value item, const Value* fallback) const {
  for (const auto& part : parts_) {
    item = in.item(item, part);
    if (fallback != nullptr && item.is_undefined()) item = *fallback;
  }
  return item;
}

std::vector<ItemPath> item_paths(Interpreter& in, const Value& attribute) {
  std::vector<ItemPath> paths;
  if (!attribute.is_string()) {
    paths.emplace_back(in, attribute);
    return paths;
  }
  const Text comma(",", true);
  for (const auto& span : split_text(in.budget(), attribute.text(), &comma, -1, false)) {
    paths.emplace_back(in, in.make_string(attribute.text().slice(span.begin, span.end)));
  }
  return paths;
}

Value ignore_case(Interpreter& in, const Value& value) {
  if (!value.is_string()) return value;
  return in.make_string(lower_text(in.budget(), value.text()));
}

namespace {

Value filter_map(Interpreter& in, const Value& v, Args& args) {
  std::vector<Value> out;
  if (!truthy(v)) return in.make_iterator({});
  const bool by_attribute = args.positional.empty() && !args.named.empty() &&
                            (args.named[0].first.view() == "attribute" ||
                             (args.named.size() > 1 && args.named[1].first.view() == "attribute"));
  if (by_attribute) {
    const Bound bound("map", args, {"attribute", "default"}, 1);
    const ItemPath path(in, bound[0]);
    const bool has_default = !bound[1].is(Kind::none);
    for (auto& item : in.iterate(v)) {
      out.push_back(path.get(in, std::move(item), has_default ? &bound[1] : nullptr));
    }
    return in.make_iterator(std::move(out));
  }
  if (args.positional.empty()) fail("map requires a filter argument");
  const std::string name = need_string(args.positional[0], "map").bytes();
  args.positional.erase(args.positional.begin());
  for (const auto& item : in.iterate(v)) {
    Args copy = args;
    out.push_back(in.apply_filter(name, item, copy));
  }
  return in.make_iterator(std::move(out));
}

/// select, reject (offset 0) and selectattr, rejectattr (offset 1).
Value choose(Interpreter& in, const Value& v, Args& args, bool wanted, bool by_attribute) {
  if (!truthy(v)) return in.make_iterator({});
  if (by_attribute && args.positional.empty()) fail("missing parameter for attribute name");
  const ItemPath path(in, by_attribute ? args.positional[0] : Value());
  const size_t offset = by_attribute ? 1 : 0;
  std::string test;
  if (args.positional.size() > offset) {
    test = need_string(args.positional[offset], "select").bytes();
    args.positional.erase(args.positional.begin(),
                          args.positional.begin() + static_cast<std::ptrdiff_t>(offset) + 1);
  }
  const bool has_test = !test.empty();
  std::vector<Value> out;
  for (auto& item : in.iterate(v)) {
    const Value subject = path.get(in, item);
    bool holds = false;
    if (has_test) {
      Args copy = args;
      holds = in.apply_test(test, subject, copy);
    } else {
      holds = truthy(subject);
    }
    if (holds == wanted) out.push_back(std::move(item));
  }
  return in.make_iterator(std::move(out));
}

Value filter_select(Interpreter& in, const Value& v, Args& args) {
  return choose(in, v, args, true, false);
}
Value filter_reject(Interpreter& in, const Value& v, Args& args) {
  return choose(in, v, args, false, false);
}
Value filter_selectattr(Interpreter& in, const Value& v, Args& args) {
  return choose(in, v, args, true, true);
}
Value filter_rejectattr(Interpreter& in, const Value& v, Args& args) {
  return choose(in, v, args, false, true);
}

}  // namespace

const std::vector<NamedBuiltin>& selection_filters() {
  static const std::vector<NamedBuiltin> kTable = {
      {"map", filter_map},
      {"select", filter_select},
      {"reject", filter_reject},
      {"selectattr", filter_selectattr},
      {"rejectattr", filter_rejectattr},
  };
  return kTable;
}

}  // namespace headrace::jinja
