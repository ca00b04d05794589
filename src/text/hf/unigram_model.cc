// The most likely tokens of a word (Viterbi). The rules: Hugging Face tokenizers,
// src/models/unigram/model.rs, encode_optimized; of equal paths the one counts whose last token is
// longest.
#include <algorithm>
#include <limits>

#include "text/hf/prefix_trie.h"
#include "text/hf/word_model.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace headrace::text {
namespace {

constexpr double kUnknownPenalty = 10;
// Positions after which a word's paths are looked at: what they share is given out, so that memory
// stays bounded.
constexpr size_t kUnigramWindow = size_t{1} << 18;

std::vector<std::pair<std::string_view, int32_t>> sorted_words(const Vocabulary& vocabulary,
                                                               const ModelSpec& spec) {
  std::vector<std::pair<std::string_view, int32_t>> words;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (spec.in_model[id] && !vocabulary.pieces[id].empty()) {
      words.emplace_back(vocabulary.pieces[id], static_cast<int32_t>(id));
    }
  }
  std::sort(words.begin(), words.end());
  // Of equal spellings the last id counts.
  const auto last = std::unique(words.rbegin(), words.rend(),
                                [](const auto& a, const auto& b) { return a.first == b.first; });
  words.erase(words.begin(), last.base());
  return words;
}

class UnigramModel final : public WordModel {
 public:
  UnigramModel(const Vocabulary& vocabulary, const ModelSpec& spec)
      : scores_(spec.scores),
        words_(vocabulary, spec),
        trie_(sorted_words(vocabulary, spec)),
        unknown_(spec.unknown),
        byte_fallback_(spec.byte_fallback) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t id = 0; id < vocabulary.size(); ++id) {
      if (spec.in_model[id]) least = std::min(least, scores_[id]);
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  std::unique_ptr<Run> start(size_t num_bytes) const override;

 private:
  friend class UnigramRun;

  std::vector<double> scores_;
  ModelWords words_;
  PrefixTrie trie_;
  TokenId unknown_;
  double unknown_score_ = 0;
  bool byte_fallback_;
};

class UnigramRun final : public WordModel::Run {
 public:
  UnigramRun(const UnigramModel& owner, size_t num_bytes) : owner_(owner), cache_(num_bytes) {}

  void append(std::string_view word, std::vector<TokenId>& out) override {
    cache_.append(word, out, [&] { append_new(word, out); });
  }

 private:
  // The best path to a position of the word.
  struct Node {
    double score = 0;
    uint32_t start = kNowhere;  // where its last token begins
    TokenId id = -1;
  };
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void append_new(std::string_view word, std::vector<TokenId>& out) {
    const char* const end = word.data() + word.size();
    begin_ = 0;
    unknown_begin_ = kNowhere;
    nodes_.assign(1, Node{});
    size_t reached = 0;  // positions that are on a path end here
    size_t look = kUnigramWindow;
    for (size_t at = 0; at < word.size();) {
      const double score = nodes_[at - begin_].score;
      const Decoded c = decode_utf8(word.data() + at, end);
      const uint32_t size = c.valid ? c.size : 1;
      bool has_single = false;
      owner_.trie_.each_prefix(word.data() + at, end, [&](size_t length, int32_t id) {
        has_single = has_single || length == size;
        reached = std::max(reached, at + length);
        offer(at, at + length, owner_.scores_[static_cast<size_t>(id)] + score, id);
      });
      if (!has_single) {
        reached = std::max(reached, at + size);
        offer(at, at + size, owner_.unknown_score_ + score, -1);
      }
      at += size;
      if (at >= look && at < word.size()) {
        give_out_shared(word, at, reached, out);
        look = at + std::max(kUnigramWindow, at - begin_);
      }
    }
    give_out(word, word.size(), out);
    finish_unknown(word, word.size(), out);
  }

  void offer(size_t from, size_t to, double score, TokenId id) {
    if (nodes_.size() <= to - begin_) nodes_.resize(to - begin_ + 1);
    Node& node = nodes_[to - begin_];
    if (node.start != kNowhere && !(score > node.score)) return;
    node = {score, static_cast<uint32_t>(from), id};
  }

  // All paths from here on come through the last position that the paths to [at, reached] share.
  void give_out_shared(std::string_view word, size_t at, size_t reached,
                       std::vector<TokenId>& out) {
    std::vector<size_t> heads;
    for (size_t end = at; end <= reached; ++end) {
      if (nodes_[end - begin_].start != kNowhere) heads.push_back(end);
    }
    std::make_heap(heads.begin(), heads.end());
    while (heads.front() != begin_ && heads.size() > 1) {
      const size_t last = heads.front();
      while (heads.size() > 1 && heads.front() == last) {
        std::pop_heap(heads.begin(), heads.end());
        heads.pop_back();
      }
      if (heads.size() == 1 && heads.front() == last) break;
      heads.push_back(nodes_[last - begin_].start);
      std::push_heap(heads.begin(), heads.end());
    }
    const size_t shared = heads.front();
    if (shared == begin_) return;
    give_out(word, shared, out);
    nodes_.erase(nodes_.begin(), nodes_.begin() + static_cast<ptrdiff_t>(shared - begin_));
    begin_ = shared;
    nodes_[0].start = kNowhere;
  }

  // The tokens of the best path from begin_ to `end`.
  void give_out(std::string_view word, size_t end, std::vector<TokenId>& out) {
    path_.clear();
    for (size_t at = end; at > begin_;) {
      path_.push_back(static_cast<uint32_t>(at));
      at = nodes_[at - begin_].start;
    }
    for (size_t i = path_.size(); i-- > 0;) {
      const Node& node = nodes_[path_[i] - begin_];
      if (node.id < 0 || node.id == owner_.unknown_) {
        if (unknown_begin_ == kNowhere) unknown_begin_ = node.start;
        continue;
      }
      finish_unknown(word, node.start, out);
      out.push_back(node.id);
    }
  }

  // Unknown neighbours are one token, or their bytes.
  void finish_unknown(std::string_view word, size_t end, std::vector<TokenId>& out) {
    if (unknown_begin_ == kNowhere) return;
    const std::string_view text = word.substr(unknown_begin_, end - unknown_begin_);
    unknown_begin_ = kNowhere;
    if (const TokenId id = owner_.words_.find(text); id >= 0) return out.push_back(id);
    if (owner_.byte_fallback_ && owner_.words_.append_bytes(text, out)) return;
    if (owner_.unknown_ < 0) no_token_for(text);
    out.push_back(owner_.unknown_);
  }

  const UnigramModel& owner_;
  WordCache cache_;
  std::vector<Node> nodes_;  // by position, from begin_ on
  size_t begin_ = 0;
  uint32_t unknown_begin_ = kNowhere;
  std::vector<uint32_t> path_;
};

std::unique_ptr<WordModel::Run> UnigramModel::start(size_t num_bytes) const {
  return std::make_unique<UnigramRun>(*this, num_bytes);
}

}  // namespace

std::unique_ptr<const WordModel> make_unigram_model(const Vocabulary& vocabulary,
                                                    const ModelSpec& spec) {
  return std::make_unique<UnigramModel>(vocabulary, spec);
}

}  // namespace headrace::text
