// See pretty.h.
#include "text/chat_template/pretty.h"

#include <algorithm>

#include "text/chat_template/printing.h"
#include "text/chat_template/text_ops.h"

namespace headrace::jinja {

namespace {

constexpr int64_t kColumns = 80;

/// Whether Python lays it out by its parts; all else is printed as its repr, on one line.
bool is_container(const Value& v) {
  return v.is(Kind::dict) || (v.is_sequence() && !v.as<Sequence>().is_group);
}
bool is_plain_string(const Value& v) {
  return v.is_string() && !v.text().markup();
}

bool is_ordered_with(const Value& a, const Value& b) {
  return (a.is_number() && b.is_number()) || (a.is_string() && b.is_string());
}

std::string_view opening(const Value& v) {
  return v.is(Kind::dict) ? "{" : (v.is(Kind::list) ? "[" : "(");
}
std::string_view closing(const Value& v) {
  if (v.is(Kind::dict)) return "}";
  if (v.is(Kind::list)) return "]";
  return v.as<Sequence>().items.size() == 1 ? ",)" : ")";
}

/// Past the word at `at` and the white space after it, at most `end`.
size_t end_of_word(std::string_view text, size_t at, size_t end) {
  bool in_space = false;
  while (at < end) {
    const auto c = decode_at(text, at);
    if (in_space && !is_space(c.value)) break;
    in_space = in_space || is_space(c.value);
    at += c.length;
  }
  return at;
}

class PrettyPrinter {
 public:
  explicit PrettyPrinter(Interpreter& in) : in_(in) {}

  Text print(const Value& v) {
    layout(v, 0, 0, true);
    return {std::move(out_), trusted_};
  }

 private:
  /// Appends `v` at column `column`, with `reserved` columns left for what follows it.
  void layout(const Value& v, int64_t column, int64_t reserved, bool outermost);
  void layout_items(const std::vector<Value>& items, int64_t column, int64_t reserved);
  void layout_entries(const Dict& dict, int64_t column, int64_t reserved);
  void layout_string(const Text& text, int64_t column, int64_t reserved, bool outermost);
  void flat(const Value& v);
  /// Takes the columns of flat(v) from `left`; stops when that is below 0.
  void measure(const Value& v, int64_t& left);

  std::vector<Span> literals_of(const Text& text, int64_t room, int64_t reserved);
  std::vector<const std::pair<Value, Value>*> sorted_entries(const Dict& dict);
  bool before(const Value& a, const Value& b);

  void add(std::string_view text) {
    in_.budget().check_bytes(out_.size() + text.size());
    in_.budget().step_bytes(text.size());
    out_ += text;
  }
  void add(const Text& text) {
    trusted_ = trusted_ && text.all_trusted();
    add(text.view());
  }
  void new_line(int64_t column) {
    in_.budget().check_bytes(out_.size() + static_cast<size_t>(column) + 1);
    add("\n" + std::string(static_cast<size_t>(column), ' '));
  }

  Interpreter& in_;
  std::string out_;
  bool trusted_ = true;
};

/// Python's order where there is one, else that of the types' names. Keys of one type that have no
/// order stay as they are.
bool PrettyPrinter::before(const Value& a, const Value& b) {
  if (is_ordered_with(a, b)) return in_.less(a, b);
  if (!a.is(Kind::tuple) || !b.is(Kind::tuple)) return type_name(a) < type_name(b);
  const auto& x = a.as<Sequence>().items;
  const auto& y = b.as<Sequence>().items;
  size_t i = 0;
  while (i < x.size() && i < y.size() && in_.equal(x[i], y[i])) ++i;
  if (i == x.size() || i == y.size()) return x.size() < y.size();
  const bool both_tuples = x[i].is(Kind::tuple) && y[i].is(Kind::tuple);
  return (both_tuples || is_ordered_with(x[i], y[i])) && before(x[i], y[i]);
}

std::vector<const std::pair<Value, Value>*> PrettyPrinter::sorted_entries(const Dict& dict) {
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.entries.all()) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
    in_.budget().step();
    return before(a->first, b->first);
  });
  return entries;
}

void PrettyPrinter::flat(const Value& v) {
  if (!is_container(v)) {
    add(in_.to_repr(v));
    return;
  }
  trusted_ = trusted_ && !v.tainted();
  add(opening(v));
  bool first = true;
  const auto separate = [&] {
    in_.budget().step();
    if (!first) add(", ");
    first = false;
  };
  if (v.is(Kind::dict)) {
    for (const auto* entry : sorted_entries(v.as<Dict>())) {
      separate();
      flat(entry->first);
      add(": ");
      flat(entry->second);
    }
  } else {
    for (const Value& item : v.as<Sequence>().items) {
      separate();
      flat(item);
    }
  }
  add(closing(v));
}

void PrettyPrinter::measure(const Value& v, int64_t& left) {
  in_.budget().step();
  if (is_plain_string(v)) {
    ReprWidth width;
    // No character takes less than a column: past so many it does not fit, whatever they are.
    width.add(v.view().substr(0, byte_offset(v.view(), static_cast<size_t>(kColumns))));
    left -= width.total();
    return;
  }
  if (!is_container(v)) {
    left -= static_cast<int64_t>(count_code_points(in_.to_repr(v).view()));
    return;
  }
  left -= static_cast<int64_t>(opening(v).size() + closing(v).size());
  const int64_t separators = 2;
  bool first = true;
  const auto part = [&](const Value& value) {
    if (!first) left -= separators;
    first = false;
    if (left >= 0) measure(value, left);
  };
  if (v.is(Kind::dict)) {
    for (const auto& [key, value] : v.as<Dict>().entries.all()) {
      part(key);
      part(value);
      if (left < 0) return;
    }
  } else {
    for (const Value& item : v.as<Sequence>().items) {
      part(item);
      if (left < 0) return;
    }
  }
}

void PrettyPrinter::layout(const Value& v, int64_t column, int64_t reserved, bool outermost) {
  in_.budget().step();
  int64_t left = kColumns - column - reserved;
  if (left >= 0) measure(v, left);
  if (left >= 0 || !(is_container(v) || is_plain_string(v))) {
    flat(v);
    return;
  }
  if (v.is_string()) {
    trusted_ = trusted_ && v.text().all_trusted();
    layout_string(v.text(), column, reserved, outermost);
    return;
  }
  trusted_ = trusted_ && !v.tainted();
  const auto end = closing(v);
  add(opening(v));
  reserved += static_cast<int64_t>(end.size());
  if (v.is(Kind::dict)) {
    layout_entries(v.as<Dict>(), column + 1, reserved);
  } else {
    layout_items(v.as<Sequence>().items, column + 1, reserved);
  }
  add(end);
}

void PrettyPrinter::layout_items(const std::vector<Value>& items, int64_t column,
                                 int64_t reserved) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      add(",");
      new_line(column);
    }
    layout(items[i], column, i + 1 == items.size() ? reserved : 1, false);
  }
}

void PrettyPrinter::layout_entries(const Dict& dict, int64_t column, int64_t reserved) {
  const auto entries = sorted_entries(dict);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) {
      add(",");
      new_line(column);
    }
    const size_t begin = out_.size();
    flat(entries[i]->first);
    add(": ");
    const auto key = count_code_points(std::string_view(out_).substr(begin));
    layout(entries[i]->second, column + static_cast<int64_t>(key),
           i + 1 == entries.size() ? reserved : 1, false);
  }
}

/// The literals that Python would join to `text` again: a line of it each, and of a line that is
/// too wide, as many words with the space after them as fit `room` columns. The last one has
/// `reserved` columns less.
std::vector<Span> PrettyPrinter::literals_of(const Text& text, int64_t room, int64_t reserved) {
  in_.budget().step_bytes(2 * text.size());
  const auto view = text.view();
  std::vector<Span> literals;
  for (const auto& line : split_lines(in_.budget(), text)) {
    const size_t line_end = line.end_with_break;
    const int64_t line_room = room - (line_end == view.size() ? reserved : 0);
    ReprWidth whole;
    whole.add(view.substr(line.text.begin, line_end - line.text.begin));
    if (whole.total() <= line_room) {
      literals.push_back({line.text.begin, line_end});
      continue;
    }
    Span literal{line.text.begin, line.text.begin};
    ReprWidth width;
    while (literal.end < line_end) {
      const size_t word_end = end_of_word(view, literal.end, line_end);
      const auto word = view.substr(literal.end, word_end - literal.end);
      ReprWidth longer = width;
      longer.add(word);
      if (longer.total() > (word_end == line_end ? line_room : room)) {
        in_.budget().step();
        if (literal.end > literal.begin) literals.push_back(literal);
        literal.begin = literal.end;
        longer = ReprWidth();
        longer.add(word);
      }
      width = longer;
      literal.end = word_end;
    }
    literals.push_back(literal);
  }
  return literals;
}

void PrettyPrinter::layout_string(const Text& text, int64_t column, int64_t reserved,
                                  bool outermost) {
  const int64_t parenthesis = outermost ? 1 : 0;
  column += parenthesis;
  const auto literals = literals_of(text, kColumns - column, reserved + parenthesis);
  if (literals.size() < 2) {
    add(repr_of_string(text.view()));
    return;
  }
  if (outermost) add("(");
  for (size_t i = 0; i < literals.size(); ++i) {
    if (i > 0) new_line(column);
    add(repr_of_string(text.view().substr(literals[i].begin, literals[i].end - literals[i].begin)));
  }
  if (outermost) add(")");
}

}  // namespace

Text pretty_text(Interpreter& in, const Value& value) {
  return PrettyPrinter(in).print(value);
}

}  // namespace headrace::jinja
