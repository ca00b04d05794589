// The trie of token_matcher.h.
#include "text/token_matcher.h"

#include <algorithm>

#include "text/unicode.h"

namespace headrace::text {
namespace {

struct Entry {
  std::string_view text;
  TokenId id;
};

// The character that ends at text[at], which must not be 0; U+FFFD if it is ill-formed.
char32_t character_before(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && at - begin < 4) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) break;
  }
  const Decoded c = decode_utf8(text.data() + begin, text.data() + at);
  return c.valid && c.size == at - begin ? c.code : kReplacement;
}

char32_t character_at(std::string_view text, size_t at) {
  return decode_utf8(text.data() + at, text.data() + text.size()).code;
}

bool is_space(char32_t code) {
  return (CharTable::get().of(code) & kSpace) != 0;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_word_character(character_before(text, begin))) ||
         (end < text.size() && is_word_character(character_at(text, end)));
}

}  // namespace

Result<TokenMatcher> TokenMatcher::make(const Vocabulary& vocabulary, std::string_view key) {
  std::vector<Entry> entries;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    if (kind != TokenKind::control && kind != TokenKind::user_defined) continue;
    const std::string_view text = vocabulary.bytes[id];
    if (text.empty()) continue;
    if (text.size() > kMaxSpelling) {
      return Error{ErrorCode::unsupported,
                   "token " + std::to_string(id) + ": expected a special token of at most " +
                       std::to_string(kMaxSpelling) + " bytes, found " +
                       std::to_string(text.size()),
                   std::string(key), ""};
    }
    entries.push_back({text, static_cast<TokenId>(id)});
  }
  // Of two equal spellings the lower id counts, as in the index.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.text != b.text ? a.text < b.text : a.id < b.id;
  });

  TokenMatcher matcher;
  matcher.rules_ = vocabulary.added;
  std::sort(matcher.rules_.begin(), matcher.rules_.end(),
            [](const AddedRule& a, const AddedRule& b) { return a.id < b.id; });
  for (const Entry& e : entries) matcher.is_first_[static_cast<unsigned char>(e.text[0])] = true;

  // Level by level: a node stands for the entries [first, last) that share its prefix.
  struct Pending {
    uint32_t node;
    size_t first, last, depth;
  };
  matcher.nodes_.emplace_back();
  std::vector<Pending> queue{{0, 0, entries.size(), 0}};
  for (size_t next = 0; next < queue.size(); ++next) {
    const Pending now = queue[next];
    size_t i = now.first;
    for (; i < now.last && entries[i].text.size() == now.depth; ++i) {
      Node& node = matcher.nodes_[now.node];
      if (node.id >= 0) continue;
      node.id = entries[i].id;
      node.always = vocabulary.kinds[static_cast<size_t>(node.id)] == TokenKind::user_defined;
    }
    matcher.nodes_[now.node].first_child = static_cast<uint32_t>(matcher.nodes_.size());
    while (i < now.last) {
      const char byte = entries[i].text[now.depth];
      const size_t first = i;
      while (i < now.last && entries[i].text[now.depth] == byte) ++i;
      Node child;
      child.byte = static_cast<uint8_t>(byte);
      queue.push_back({static_cast<uint32_t>(matcher.nodes_.size()), first, i, now.depth + 1});
      matcher.nodes_.push_back(child);
      ++matcher.nodes_[now.node].num_children;
    }
  }
  return matcher;
}

TokenMatcher::Found TokenMatcher::match(std::string_view text, size_t from, size_t at,
                                        size_t trusted_end) const {
  Found best;
  const Node* node = nodes_.data();
  for (size_t end = at; end < text.size();) {
    const auto byte = static_cast<uint8_t>(text[end]);
    const Node* const first = nodes_.data() + node->first_child;
    const Node* const last = first + node->num_children;
    const Node* const child = std::lower_bound(
        first, last, byte, [](const Node& n, uint8_t wanted) { return n.byte < wanted; });
    if (child == last || child->byte != byte) break;
    node = child;
    ++end;
    if (node->id < 0 || (!node->always && end > trusted_end)) continue;
    const Found found = apply_rule(text, from, {node->id, at, end});
    if (found.id >= 0) best = found;
  }
  return best;
}

TokenMatcher::Found TokenMatcher::apply_rule(std::string_view text, size_t from,
                                             Found found) const {
  const auto rule = std::lower_bound(rules_.begin(), rules_.end(), found.id,
                                     [](const AddedRule& r, TokenId id) { return r.id < id; });
  if (rule == rules_.end() || rule->id != found.id) return found;
  if (rule->single_word && touches_word(text, found.begin, found.end)) return {};
  if (rule->strip_left) {
    while (found.begin > from && is_space(character_before(text, found.begin))) {
      do {
        --found.begin;
      } while ((static_cast<unsigned char>(text[found.begin]) & 0xC0) == 0x80);
    }
  }
  if (rule->strip_right) {
    while (found.end < text.size() && is_space(character_at(text, found.end))) {
      found.end += decode_utf8(text.data() + found.end, text.data() + text.size()).size;
    }
  }
  return found;
}

}  // namespace headrace::text
