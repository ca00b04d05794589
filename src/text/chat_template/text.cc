#include "text/chat_template/text.h"

namespace headrace::jinja {

bool Text::trusted(size_t from, size_t to) const {
  bool all = true;
  for_each_run(from, to, [&](size_t, size_t, bool trust) { all = all && trust; });
  return all;
}

void Text::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  if (bytes_.empty()) {
    first_trusted_ = trusted;
  } else if (last_trusted() != trusted) {
    cuts_.push_back(bytes_.size());
  }
  bytes_.append(bytes);
}

void Text::append(const Text& other, size_t from, size_t to) {
  other.for_each_run(from, to, [&](size_t begin, size_t end, bool trust) {
    append(other.view().substr(begin, end - begin), trust);
  });
}

Text Text::slice(size_t from, size_t to) const {
  Text out;
  out.append(*this, from, to);
  out.markup_ = markup_;
  return out;
}

}  // namespace headrace::jinja
