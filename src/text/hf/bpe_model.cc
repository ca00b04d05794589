// Byte-pair encoding of characters, by a list of merges or by scores. The rules: Hugging Face
// tokenizers, src/models/bpe; by scores: SentencePiece, src/bpe_model.cc.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "text/hf/word_model.h"
#include "text/merge_word.h"
#include "text/pair_table.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace headrace::text {
namespace {

class BpeModel final : public WordModel {
 public:
  BpeModel(const Vocabulary& vocabulary, const ModelSpec& spec)
      : vocabulary_(vocabulary),
        words_(vocabulary, spec),
        unknown_(spec.unknown),
        byte_fallback_(spec.byte_fallback),
        fuse_unknown_(spec.fuse_unknown),
        ignore_merges_(spec.ignore_merges),
        by_scores_(spec.kind == ModelKind::scored_bpe),
        prefix_(spec.prefix),
        suffix_(spec.suffix),
        pairs_(vocabulary.merges.size()) {
    if (by_scores_) {
      rank_by_scores(spec);
      return;
    }
    // Of two equal pairs the later one counts, and add() keeps the first.
    for (size_t rank = vocabulary.merges.size(); rank-- > 0;) {
      const MergeRule& rule = vocabulary.merges[rank];
      pairs_.add(rule.left, rule.right, {static_cast<uint32_t>(rank), rule.joined});
    }
  }

  std::unique_ptr<Run> start(size_t num_bytes) const override;

 private:
  friend class BpeModelRun;

  void rank_by_scores(const ModelSpec& spec) {
    std::vector<uint32_t> order(vocabulary_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return spec.scores[a] > spec.scores[b]; });
    ranks_.assign(vocabulary_.size(), kNoRank);
    uint32_t rank = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && spec.scores[order[i]] != spec.scores[order[i - 1]]) ++rank;
      if (!spec.in_model[order[i]] || vocabulary_.kinds[order[i]] != TokenKind::normal) continue;
      ranks_[order[i]] = rank;
      longest_ = std::max(longest_, vocabulary_.pieces[order[i]].size());
    }
  }

  // By scores: the token that a text of several characters joins to.
  Joined scored(std::string_view text) const {
    if (text.size() > longest_) return {};
    const TokenId id = words_.find(text);
    if (id < 0 || ranks_[static_cast<size_t>(id)] == kNoRank) return {};
    return {ranks_[static_cast<size_t>(id)], id};
  }

  const Vocabulary& vocabulary_;
  ModelWords words_;
  TokenId unknown_;
  bool byte_fallback_, fuse_unknown_, ignore_merges_, by_scores_;
  std::string prefix_, suffix_;
  PairTable pairs_;
  std::vector<uint32_t> ranks_;
  size_t longest_ = 0;
};

class BpeModelRun final : public WordModel::Run {
 public:
  BpeModelRun(const BpeModel& owner, size_t num_bytes) : owner_(owner), cache_(num_bytes) {}

  void append(std::string_view word, std::vector<TokenId>& out) override {
    cache_.append(word, out, [&] { append_new(word, out); });
  }

 private:
  static constexpr size_t kMostBytes = 4;  // symbols that one character can become

  void append_new(std::string_view word, std::vector<TokenId>& out) {
    if (owner_.ignore_merges_) {
      if (const TokenId id = owner_.words_.find(word); id >= 0) return out.push_back(id);
    }
    size_t begin = 0;
    const auto fill = [&](size_t skip, size_t limit) {
      begin += skip;
      return fill_symbols(word, begin, limit);
    };
    const auto join = [&](const Symbol& left, const Symbol& right) -> Joined {
      if (!owner_.by_scores_) return owner_.pairs_.find(left.id, right.id);
      return owner_.scored(word.substr(begin + left.begin, right.end - left.begin));
    };
    const auto emit = [&](std::span<const Symbol> tokens) {
      for (const Symbol& token : tokens) {
        if (token.id >= 0) {
          out.push_back(token.id);
        } else {
          append_unknown(word.substr(begin + token.begin, token.end - token.begin), out);
        }
      }
    };
    const auto restart = [&, first = out.size()] {
      begin = 0;
      out.resize(first);
    };
    merge_word(engine_, fill, join, emit, restart);
  }

  // By scores a character without a token may still join to one: it is unknown in the end only.
  void append_unknown(std::string_view text, std::vector<TokenId>& out) const {
    if (owner_.byte_fallback_ && owner_.words_.append_bytes(text, out)) return;
    if (owner_.unknown_ < 0) return;
    if (owner_.fuse_unknown_ && !out.empty() && out.back() == owner_.unknown_) return;
    out.push_back(owner_.unknown_);
  }

  // Sets the engine's symbols to those of `word` from `begin` on; false if there are more than
  // `limit`.
  bool fill_symbols(std::string_view word, size_t begin, size_t limit) {
    std::vector<Symbol>& symbols = engine_.symbols();
    symbols.clear();
    symbols.reserve(std::min(word.size() - begin, limit));
    const char* const end = word.data() + word.size();
    const char* const base = word.data() + begin;
    bool extends = false;  // the last symbol is unknown and takes more
    for (const char* p = base; p < end;) {
      if (symbols.size() + kMostBytes > limit) return false;
      const Decoded c = decode_utf8(p, end);
      const uint32_t size = c.valid ? c.size : 1;
      const auto at = static_cast<uint32_t>(p - base);
      const TokenId id = find({p, size}, p == word.data(), p + size == end);
      p += size;
      const bool extended = std::exchange(extends, false);
      if (owner_.by_scores_) {
        symbols.push_back({id >= 0 && is_joinable(id) ? id : -1, at, at + size});
      } else if (id >= 0) {
        symbols.push_back({id, at, at + size});
      } else if (!push_bytes({base + at, size}, at) && owner_.unknown_ >= 0) {
        extends = owner_.fuse_unknown_;
        if (extended) {
          symbols.back().end = at + size;
        } else {
          symbols.push_back({owner_.unknown_, at, at + size});
        }
      }
    }
    return true;
  }

  bool is_joinable(TokenId id) const { return owner_.ranks_[static_cast<size_t>(id)] != kNoRank; }

  bool push_bytes(std::string_view text, uint32_t at) {
    if (!owner_.byte_fallback_) return false;
    const ModelWords& words = owner_.words_;
    if (std::any_of(text.begin(), text.end(), [&](char c) { return words.byte(c) < 0; })) {
      return false;
    }
    for (const char c : text) {
      engine_.symbols().push_back({words.byte(c), at, at + 1});
      ++at;
    }
    return true;
  }

  TokenId find(std::string_view character, bool first, bool last) {
    const bool has_prefix = !first && !owner_.prefix_.empty();
    const bool has_suffix = last && !owner_.suffix_.empty();
    if (!has_prefix && !has_suffix) return owner_.words_.find(character);
    spelled_.clear();
    if (has_prefix) spelled_ += owner_.prefix_;
    spelled_ += character;
    if (has_suffix) spelled_ += owner_.suffix_;
    return owner_.words_.find(spelled_);
  }

  const BpeModel& owner_;
  WordCache cache_;
  MergeEngine engine_;
  std::string spelled_;
};

std::unique_ptr<WordModel::Run> BpeModel::start(size_t num_bytes) const {
  return std::make_unique<BpeModelRun>(*this, num_bytes);
}

}  // namespace

std::unique_ptr<const WordModel> make_bpe_model(const Vocabulary& vocabulary,
                                                const ModelSpec& spec) {
  return std::make_unique<BpeModel>(vocabulary, spec);
}

}  // namespace headrace::text
