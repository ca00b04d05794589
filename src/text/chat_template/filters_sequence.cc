// Filters on whole sequences and mappings.
#include <algorithm>

#include "text/chat_template/item_path.h"
#include "text/chat_template/text_ops.h"

namespace headrace::jinja {

namespace {

Value filter_default(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("default", args, {"default_value", "boolean"});
  if (!v.is_undefined() && !(bound.truth(1, false) && !truthy(v))) return v;
  return bound.has(0) ? bound[0] : in.make_string("", true);
}

Value filter_length(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("length", args, {});
  return Value::integer(in.length(v));
}

Value filter_list(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("list", args, {});
  return in.make_list(in.iterate(v)).with_taint(v.tainted());
}

Value filter_items(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("items", args, {});
  if (v.is_undefined()) return in.make_iterator({});
  if (!v.is(Kind::dict)) fail("can only get item pairs from a mapping");
  return in.make_iterator(in.iterate(in.make_view(View::What::items, v)));
}

Value filter_first(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("first", args, {});
  if (v.is(Kind::iterator)) {
    const auto& iterator = v.as<Iterator>();
    if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
  } else if (v.is_string() && !v.text().empty()) {
    Text letter = v.text().slice(0, decode_at(v.view(), 0).length);
    letter.set_markup(false);
    return in.make_string(std::move(letter));
  } else {
    auto items = in.iterate(v);
    if (!items.empty()) return items.front();
  }
  return in.make_undefined("no first item, sequence was empty");
}

std::vector<Value> reversed(Interpreter& in, const Value& v) {
  if (v.is(Kind::iterator)) fail("'generator' object is not reversible");
  auto items = in.iterate(v);
  std::reverse(items.begin(), items.end());
  return items;
}

Value filter_last(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("last", args, {});
  auto items = reversed(in, v);
  return items.empty() ? in.make_undefined("no last item, sequence was empty") : items.front();
}

Value filter_reverse(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("reverse", args, {});
  if (v.is_string()) {
    const Value back = Value::integer(-1);
    return in.slice(v, nullptr, nullptr, &back);
  }
  if (v.is(Kind::iterator)) {
    auto items = in.iterate(v);
    std::reverse(items.begin(), items.end());
    return in.make_list(std::move(items));
  }
  return in.make_iterator(reversed(in, v));
}

Value filter_join(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("join", args, {"d", "attribute"});
  const Text separator = bound.has(0) ? in.to_text(bound[0]) : Text();
  const ItemPath path(in, bound[1]);
  TextBuilder out(in.budget());
  bool first = true;
  for (auto& item : in.iterate(v)) {
    if (!first) out.append(separator);
    first = false;
    in.budget().step();
    out.append(in.to_text(path.get(in, std::move(item))));
  }
  return in.make_string(out.take());
}

/// Sorts items by their keys, stably; reversed order keeps equal items as they were.
std::vector<Value> sorted(Interpreter& in, std::vector<Value> items, const std::vector<Value>& keys,
                          bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? in.less(keys[b], keys[a]) : in.less(keys[a], keys[b]);
  });
  std::vector<Value> out;
  out.reserve(items.size());
  for (const size_t i : order) out.push_back(std::move(items[i]));
  return out;
}

Value filter_sort(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  const bool fold = !bound.truth(1, false);
  const auto paths = item_paths(in, bound[2]);
  auto items = in.iterate(v);
  std::vector<Value> keys;
  for (const auto& item : items) {
    std::vector<Value> parts;
    for (const auto& path : paths) {
      Value key = path.get(in, item);
      parts.push_back(fold ? ignore_case(in, key) : std::move(key));
    }
    keys.push_back(in.make_list(std::move(parts)));
  }
  return in.make_list(sorted(in, std::move(items), keys, bound.truth(0, false)));
}

Value filter_dictsort(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is(Kind::dict)) fail("dictsort: expected a mapping");
  const auto by = bound.has(1) ? need_string(bound[1], "dictsort").view() : "key";
  if (by != "key" && by != "value") fail("dictsort: by must be 'key' or 'value'");
  const bool fold = !bound.truth(0, false);
  std::vector<Value> keys;
  for (const auto& [key, value] : v.as<Dict>().entries.all()) {
    const Value& chosen = by == "key" ? key : value;
    keys.push_back(fold ? ignore_case(in, chosen) : chosen);
  }
  auto items = in.iterate(in.make_view(View::What::items, v));
  return in.make_list(sorted(in, std::move(items), keys, bound.truth(2, false)));
}

Value filter_unique(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("unique", args, {"case_sensitive", "attribute"});
  const bool fold = !bound.truth(0, false);
  const ItemPath path(in, bound[1]);
  Entries seen;
  std::vector<Value> out;
  for (auto& item : in.iterate(v)) {
    Value key = path.get(in, item);
    if (fold) key = ignore_case(in, key);
    in.budget().step(key.shape().weight);
    if (seen.find(key) != nullptr) continue;
    seen.set(std::move(key), Value());
    out.push_back(std::move(item));
  }
  return in.make_iterator(std::move(out));
}

Value extreme(Interpreter& in, const Value& v, Args& args, Comparison better) {
  const Bound bound("min or max", args, {"case_sensitive", "attribute"});
  const bool fold = !bound.truth(0, false);
  const ItemPath path(in, bound[1]);
  Value best, best_key;
  bool any = false;
  for (auto& item : in.iterate(v)) {
    Value key = path.get(in, item);
    if (fold) key = ignore_case(in, key);
    if (any && !in.compare(better, key, best_key)) continue;
    best = std::move(item);
    best_key = std::move(key);
    any = true;
  }
  return any ? best : in.make_undefined("no aggregated item, sequence was empty");
}

Value filter_min(Interpreter& in, const Value& v, Args& args) {
  return extreme(in, v, args, Comparison::lt);
}
Value filter_max(Interpreter& in, const Value& v, Args& args) {
  return extreme(in, v, args, Comparison::gt);
}

Value filter_sum(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("sum", args, {"attribute", "start"});
  const ItemPath path(in, bound[0]);
  Value total = bound.has(1) ? bound[1] : Value::integer(0);
  if (total.is_string()) fail("sum() cannot sum strings");
  for (auto& item : in.iterate(v)) {
    total = in.arithmetic(Arithmetic::add, total, path.get(in, std::move(item)));
  }
  return total;
}

Value filter_batch(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("batch", args, {"linecount", "fill_with"}, 1);
  const int64_t size = bound.integer(0, 0);
  std::vector<Value> out, row;
  for (auto& item : in.iterate(v)) {
    if (static_cast<int64_t>(row.size()) == size) {
      out.push_back(in.make_list(std::move(row)));
      row.clear();
    }
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    const int64_t missing = size - static_cast<int64_t>(row.size());
    if (!bound[1].is(Kind::none) && missing > 0) {
      in.budget().step(missing);
      row.insert(row.end(), static_cast<size_t>(missing), bound[1]);
    }
    out.push_back(in.make_list(std::move(row)));
  }
  return in.make_iterator(std::move(out));
}

Value filter_slice(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("slice", args, {"slices", "fill_with"}, 1);
  const int64_t slices = bound.integer(0, 0);
  if (slices == 0) fail("slice: division by zero");
  const auto items = in.iterate(v);
  std::vector<Value> out;
  if (slices < 0) return in.make_iterator({});
  in.budget().step(slices);
  const auto size = static_cast<int64_t>(items.size());
  auto at = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    const bool longer = i < size % slices;
    const auto end = at + static_cast<std::ptrdiff_t>(size / slices + (longer ? 1 : 0));
    std::vector<Value> part(at, end);
    at = end;
    if (!longer && !bound[1].is(Kind::none)) part.push_back(bound[1]);
    out.push_back(in.make_list(std::move(part)));
  }
  return in.make_iterator(std::move(out));
}

Value filter_groupby(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const ItemPath path(in, bound[0]);
  const Value* fallback = bound[1].is(Kind::none) ? nullptr : &bound[1];
  const bool fold = !bound.truth(2, false);
  const auto key_of = [&](const Value& item) {
    Value key = path.get(in, item, fallback);
    return fold ? ignore_case(in, key) : key;
  };
  auto items = in.iterate(v);
  std::vector<Value> keys;
  for (const auto& item : items) keys.push_back(key_of(item));
  items = sorted(in, std::move(items), keys, false);
  std::vector<Value> groups;
  for (size_t at = 0; at < items.size();) {
    const Value key = key_of(items[at]);
    std::vector<Value> members;
    const Value shown = path.get(in, items[at], fallback);
    for (; at < items.size() && in.equal(key_of(items[at]), key); ++at)
      members.push_back(items[at]);
    if (members.empty()) fail("groupby: a key that does not equal itself");
    groups.push_back(in.make_group(shown, in.make_list(std::move(members))));
  }
  return in.make_list(std::move(groups));
}

Value filter_attr(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("attr", args, {"name"}, 1);
  if (v.is_undefined()) fail_undefined(v);
  Value out;
  const auto name = need_string(bound[0], "attr").view();
  if (in.own_attribute(v, name, out)) return out;
  return in.make_undefined("'" + std::string(type_name(v)) + " object' has no attribute '" +
                           std::string(name) + "'");
}

}  // namespace

const std::vector<NamedBuiltin>& sequence_filters() {
  static const std::vector<NamedBuiltin> kTable = {
      {"default", filter_default}, {"d", filter_default},   {"length", filter_length},
      {"count", filter_length},    {"list", filter_list},   {"items", filter_items},
      {"first", filter_first},     {"last", filter_last},   {"reverse", filter_reverse},
      {"join", filter_join},       {"sort", filter_sort},   {"dictsort", filter_dictsort},
      {"unique", filter_unique},   {"min", filter_min},     {"max", filter_max},
      {"sum", filter_sum},         {"batch", filter_batch}, {"slice", filter_slice},
      {"groupby", filter_groupby}, {"attr", filter_attr},
  };
  return kTable;
}

}  // namespace headrace::jinja
