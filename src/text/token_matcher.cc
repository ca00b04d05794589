// The tries of token_matcher.h.
#include "text/token_matcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "text/unicode.h"

namespace headrace::text {
namespace {

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

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_word_character(character_before(text, begin))) ||
         (end < text.size() && is_word_character(character_at(text, end)));
}

size_t before_spaces(std::string_view text, size_t begin, size_t at) {
  while (at > begin && is_space(character_before(text, at))) {
    do {
      --at;
    } while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  }
  return at;
}

size_t behind_spaces(std::string_view text, size_t at) {
  while (at < text.size() && is_space(character_at(text, at))) {
    at += decode_utf8(text.data() + at, text.data() + text.size()).size;
  }
  return at;
}

}  // namespace

/// The stretches of a text, asked for positions that never go back.
class TokenMatcher::TrustedCursor {
 public:
  explicit TrustedCursor(std::span<const Trusted> stretches) : stretches_(stretches) {}

  /// The end of the stretch that holds `at`; `at` itself where none does.
  size_t end(size_t at) {
    while (next_ < stretches_.size() && stretches_[next_].end <= at) ++next_;
    return next_ < stretches_.size() && stretches_[next_].begin <= at ? stretches_[next_].end : at;
  }

  /// Whether a stretch holds a part of [begin, end).
  bool touches(size_t begin, size_t end) {
    if (this->end(begin) != begin) return true;
    return next_ < stretches_.size() && stretches_[next_].begin < end;
  }

 private:
  std::span<const Trusted> stretches_;
  size_t next_ = 0;
};

Result<TokenMatcher> TokenMatcher::make(const Vocabulary& vocabulary, std::string_view key) {
  TokenMatcher matcher;
  matcher.rules_ = vocabulary.added;
  std::sort(matcher.rules_.begin(), matcher.rules_.end(),
            [](const AddedRule& a, const AddedRule& b) { return a.id < b.id; });
  std::vector<Entry> first, late, late_control;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    const bool is_hidden = vocabulary.is_hidden(static_cast<TokenId>(id));
    if (!is_hidden && kind != TokenKind::user_defined) continue;
    const bool as_spelled = vocabulary.algorithm == Algorithm::pipeline;
    const std::string_view text = as_spelled ? vocabulary.pieces[id] : vocabulary.bytes[id];
    if (text.empty()) continue;
    if (text.size() > kMaxSpelling) {
      return Error{ErrorCode::unsupported,
                   "token " + std::to_string(id) + ": expected a special token of at most " +
                       std::to_string(kMaxSpelling) + " bytes, found " +
                       std::to_string(text.size()),
                   std::string(key), ""};
    }
    const AddedRule* const rule = matcher.rule_of(static_cast<TokenId>(id));
    const auto token = static_cast<TokenId>(id);
    if (rule == nullptr || !rule->late) {
      first.push_back({text, token});
      continue;
    }
    late.push_back({rule->spelled.empty() ? text : std::string_view(rule->spelled), token});
    if (is_hidden) late_control.push_back({text, token});
  }
  matcher.first_ = make_trie(std::move(first), vocabulary);
  matcher.late_ = make_trie(std::move(late), vocabulary);
  matcher.late_control_ = make_trie(std::move(late_control), vocabulary);
  return matcher;
}

TokenMatcher::Trie TokenMatcher::make_trie(std::vector<Entry> entries,
                                           const Vocabulary& vocabulary) {
  // Of two equal spellings the lower id counts, as in the index.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.text != b.text ? a.text < b.text : a.id < b.id;
  });
  Trie trie;
  for (const Entry& e : entries) trie.is_first[static_cast<unsigned char>(e.text[0])] = true;

  // Level by level: a node stands for the entries [first, last) that share its prefix.
  struct Pending {
    uint32_t node;
    size_t first, last, depth;
  };
  trie.nodes.emplace_back();
  std::vector<Pending> queue{{0, 0, entries.size(), 0}};
  for (size_t next = 0; next < queue.size(); ++next) {
    const Pending now = queue[next];
    size_t i = now.first;
    for (; i < now.last && entries[i].text.size() == now.depth; ++i) {
      Node& node = trie.nodes[now.node];
      if (node.id >= 0) continue;
      node.id = entries[i].id;
      node.always = vocabulary.kinds[static_cast<size_t>(node.id)] == TokenKind::user_defined;
    }
    trie.nodes[now.node].first_child = static_cast<uint32_t>(trie.nodes.size());
    while (i < now.last) {
      const char byte = entries[i].text[now.depth];
      const size_t first = i;
      while (i < now.last && entries[i].text[now.depth] == byte) ++i;
      Node child;
      child.byte = static_cast<uint8_t>(byte);
      queue.push_back({static_cast<uint32_t>(trie.nodes.size()), first, i, now.depth + 1});
      trie.nodes.push_back(child);
      ++trie.nodes[now.node].num_children;
    }
  }
  return trie;
}

const AddedRule* TokenMatcher::rule_of(TokenId id) const {
  const auto rule =
      std::lower_bound(rules_.begin(), rules_.end(), id,
                       [](const AddedRule& r, TokenId wanted) { return r.id < wanted; });
  return rule != rules_.end() && rule->id == id ? &*rule : nullptr;
}

TokenMatcher::Found TokenMatcher::longest(const Trie& trie, std::string_view text, size_t at,
                                          size_t trusted_end) {
  Found best;
  const Node* node = trie.nodes.data();
  for (size_t end = at; end < text.size();) {
    const auto byte = static_cast<uint8_t>(text[end]);
    const Node* const first = trie.nodes.data() + node->first_child;
    const Node* const last = first + node->num_children;
    const Node* const child = std::lower_bound(
        first, last, byte, [](const Node& n, uint8_t wanted) { return n.byte < wanted; });
    if (child == last || child->byte != byte) break;
    node = child;
    ++end;
    if (node->id >= 0 && (node->always || end <= trusted_end)) best = {node->id, end};
  }
  return best;
}

void TokenMatcher::split_piece(const Trie& trie, TrustedCursor& trusted, std::string_view piece,
                               size_t offset, FunctionRef<void(size_t, size_t)> on_text,
                               FunctionRef<void(TokenId)> on_token) const {
  size_t from = 0;  // what is not given out yet begins here
  // The white space that a token took behind it. Later ones may begin inside and take it again.
  size_t spaces_begin = 0, spaces_end = 0;
  for (size_t at = 0; at < piece.size();) {
    Found found;
    if (trie.is_first[static_cast<unsigned char>(piece[at])]) {
      found = longest(trie, piece, at, trusted.end(offset + at) - offset);
    }
    if (found.id < 0) {
      ++at;
      continue;
    }
    size_t begin = std::exchange(at, found.end);
    if (const AddedRule* const rule = rule_of(found.id)) {
      if (rule->single_word && touches_word(piece, begin, found.end)) continue;
      if (rule->strip_left) begin = before_spaces(piece, from, begin);
      if (rule->strip_right) {
        if (found.end < spaces_begin || found.end > spaces_end) {
          spaces_begin = found.end;
          spaces_end = behind_spaces(piece, found.end);
        }
        found.end = spaces_end;
      }
    }
    if (begin > from) on_text(from, begin);
    on_token(found.id);
    from = found.end;
  }
  if (from < piece.size()) on_text(from, piece.size());
}

void TokenMatcher::split_early(std::string_view text, std::span<const Trusted> trusted,
                               FunctionRef<void(size_t, size_t, bool)> on_text,
                               FunctionRef<void(TokenId)> on_token) const {
  TrustedCursor in_first(trusted), in_text(trusted), in_late(trusted);
  const bool has_late_control = late_control_.nodes.size() > 1;
  const auto give_out = [&](size_t begin, size_t end) {
    if (in_text.end(begin) >= end) return on_text(begin, end, true);
    if (!has_late_control || !in_text.touches(begin, end)) return on_text(begin, end, false);
    split_piece(
        late_control_, in_late, text.substr(begin, end - begin), begin,
        [&](size_t b, size_t e) { on_text(begin + b, begin + e, false); }, on_token);
  };
  split_piece(first_, in_first, text, 0, give_out, on_token);
}

void TokenMatcher::split_late(std::string_view text, bool trusted,
                              FunctionRef<void(std::string_view)> on_text,
                              FunctionRef<void(TokenId)> on_token) const {
  if (text.empty()) return;
  if (late_.nodes.size() == 1) return on_text(text);
  const Trusted whole{0, text.size()};
  TrustedCursor cursor({&whole, trusted ? size_t{1} : size_t{0}});
  split_piece(
      late_, cursor, text, 0,
      [&](size_t begin, size_t end) { on_text(text.substr(begin, end - begin)); }, on_token);
}

void TokenMatcher::split(std::string_view text, std::span<const Trusted> trusted,
                         FunctionRef<void(std::string_view)> on_text,
                         FunctionRef<void(TokenId)> on_token) const {
  TrustedCursor in_first(trusted), in_late(trusted);
  const auto give_out = [&](size_t begin, size_t end) { on_text(text.substr(begin, end - begin)); };
  const auto split_again = [&](size_t begin, size_t end) {
    split_piece(
        late_, in_late, text.substr(begin, end - begin), begin,
        [&](size_t b, size_t e) { give_out(begin + b, begin + e); }, on_token);
  };
  if (late_.nodes.size() == 1) {
    split_piece(first_, in_first, text, 0, give_out, on_token);
  } else {
    split_piece(first_, in_first, text, 0, split_again, on_token);
  }
}

}  // namespace headrace::text
