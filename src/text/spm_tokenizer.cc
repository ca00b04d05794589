// See spm_tokenizer.h. The algorithm: SentencePiece, src/bpe_model.cc; ties go to the left.
#include "text/spm_tokenizer.h"

#include <algorithm>
#include <numeric>

#include "text/merge_word.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace headrace::text {

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary, TokenMatcher matcher)
    : BaseTokenizer(std::move(vocabulary), std::move(matcher)) {
  const Vocabulary& v = this->vocabulary();
  std::vector<uint32_t> order(v.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return v.scores[a] > v.scores[b]; });
  ranks_.assign(v.size(), kNoRank);
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && v.scores[order[i]] != v.scores[order[i - 1]]) ++rank;
    // Control, unknown and byte tokens are never made from text; nor are unused ones.
    const TokenKind kind = v.kinds[order[i]];
    if (kind == TokenKind::normal || kind == TokenKind::user_defined) ranks_[order[i]] = rank;
  }

  byte_ids_.fill(-1);
  for (size_t id = 0; id < v.size(); ++id) {
    const std::string_view piece = v.pieces[id];
    const std::string_view text = v.bytes[id];
    if (v.kinds[id] == TokenKind::byte && text.size() == 1) {
      byte_ids_[static_cast<unsigned char>(text[0])] = static_cast<TokenId>(id);
    }
    if (ranks_[id] == kNoRank) continue;
    longest_ = std::max(longest_, piece.size());
    bool seen_other = false;
    for (size_t at = 0; at < piece.size();) {
      const bool is_space = piece.substr(at).starts_with(kSpaceMark);
      if (is_space && seen_other) joins_space_[static_cast<unsigned char>(piece[at - 1])] = true;
      seen_other = !is_space;
      at += is_space ? kSpaceMark.size() : 1;
    }
  }
  // A literal U+2581 in the text is a space too: its last byte never ends a word.
  joins_space_[static_cast<unsigned char>(kSpaceMark.back())] = true;
  joins_space_[' '] = true;
}

TokenId SpmTokenizer::joinable(std::string_view piece) const {
  if (piece.size() > longest_) return -1;
  const TokenId id = vocabulary().index.find(vocabulary().pieces, piece);
  return id >= 0 && ranks_[static_cast<size_t>(id)] != kNoRank ? id : -1;
}

namespace {
constexpr size_t kMaxCharBytes = 4;  // in UTF-8
}

class SpmTokenizer::SpmRun final : public Run {
 public:
  SpmRun(const SpmTokenizer& owner, size_t num_bytes) : owner_(owner), cache_(num_bytes) {}

  void append(std::string_view text, std::vector<TokenId>& out) override {
    // Every stretch of text gets the prefix, also one after a special token.
    bool prefix = owner_.vocabulary().space_prefix;
    const size_t first = out.size();
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin + 1;
      while (end < text.size() &&
             (text[end] != ' ' || owner_.joins_space_[static_cast<unsigned char>(text[end - 1])])) {
        ++end;
      }
      const size_t at = out.size();
      append_word(text.substr(begin, end - begin), prefix, out);
      // Unknown neighbours become one token, those of two words too.
      if (at > first && at < out.size() && is_unknown(out[at - 1]) && is_unknown(out[at])) {
        out.erase(out.begin() + static_cast<ptrdiff_t>(at));
      }
      prefix = false;
      begin = end;
    }
  }

 private:
  bool is_unknown(TokenId id) const { return id == owner_.vocabulary().special.unk; }

  void append_word(std::string_view word, bool prefix, std::vector<TokenId>& out) {
    if (prefix) return append_new(word, true, out);
    cache_.append(word, out, [&] { append_new(word, false, out); });
  }

  void append_new(std::string_view word, bool prefix, std::vector<TokenId>& out) {
    std::string_view rest = word;
    bool marks_prefix = prefix;
    const auto fill = [&](size_t skip, size_t limit) {
      if (marks_prefix && skip > 0) {
        marks_prefix = false;
        skip -= kSpaceMark.size();
      }
      while (skip > 0) {
        skip -= rest.front() == ' ' ? kSpaceMark.size() : 1;
        rest.remove_prefix(1);
      }
      marked_.clear();
      if (marks_prefix) marked_ += kSpaceMark;
      const size_t most = limit * kMaxCharBytes;
      std::string_view part = rest.substr(0, most);
      for (size_t n; (n = part.find(' ')) != std::string_view::npos; part.remove_prefix(n + 1)) {
        marked_.append(part.substr(0, n)).append(kSpaceMark);
      }
      marked_.append(part);
      return decode(limit) && rest.size() <= most;
    };
    const auto join = [&](const Symbol& left, const Symbol& right) -> Joined {
      const TokenId id = owner_.joinable({marked_.data() + left.begin, right.end - left.begin});
      return id < 0 ? Joined{} : Joined{owner_.ranks_[static_cast<size_t>(id)], id};
    };
    const size_t first = out.size();
    const auto emit = [&](std::span<const Symbol> tokens) {
      for (const Symbol& token : tokens) append_symbol(token, first, out);
    };
    const auto restart = [&] {
      rest = word;
      marks_prefix = prefix;
      out.resize(first);
    };
    merge_word(engine_, fill, join, emit, restart);
  }

  // Sets the engine's symbols to the first `limit` characters of marked_; false if there are more.
  bool decode(size_t limit) {
    std::vector<Symbol>& symbols = engine_.symbols();
    symbols.clear();
    symbols.reserve(std::min(marked_.size(), limit));
    const char* const base = marked_.data();
    const char* const end = base + marked_.size();
    for (const char* p = base; p < end;) {
      if (symbols.size() == limit) return false;
      const Decoded c = decode_utf8(p, end);
      const uint32_t size = c.valid ? c.size : 1;
      const auto begin = static_cast<uint32_t>(p - base);
      symbols.push_back({owner_.joinable({p, size}), begin, begin + size});
      p += size;
    }
    return true;
  }

  // `first`: where the tokens of its word begin.
  void append_symbol(const Symbol& symbol, size_t first, std::vector<TokenId>& out) const {
    if (symbol.id >= 0) return out.push_back(symbol.id);
    const std::string_view bytes =
        std::string_view(marked_).substr(symbol.begin, symbol.end - symbol.begin);
    const auto byte_id = [&](char c) { return owner_.byte_ids_[static_cast<unsigned char>(c)]; };
    if (std::all_of(bytes.begin(), bytes.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : bytes) out.push_back(byte_id(c));
      return;
    }
    const TokenId unknown = owner_.vocabulary().special.unk;
    const bool has_neighbour = out.size() > first && is_unknown(out.back());
    if (unknown >= 0 && !has_neighbour) out.push_back(unknown);
  }

  const SpmTokenizer& owner_;
  WordCache cache_;
  MergeEngine engine_;
  std::string marked_;  // the window at work of a word, with its spaces as U+2581
};

std::unique_ptr<BaseTokenizer::Run> SpmTokenizer::start(size_t num_bytes) const {
  return std::make_unique<SpmRun>(*this, num_bytes);
}

}  // namespace headrace::text
