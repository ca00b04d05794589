// See bpe_tokenizer.h.
#include "text/bpe_tokenizer.h"

#include <algorithm>

#include "text/merge_word.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace headrace::text {

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, TokenMatcher matcher)
    : BaseTokenizer(std::move(vocabulary), std::move(matcher)),
      pairs_(this->vocabulary().merges.size()) {
  const Vocabulary& v = this->vocabulary();
  for (size_t rank = 0; rank < v.merges.size(); ++rank) {
    const MergeRule& rule = v.merges[rank];
    pairs_.add(rule.left, rule.right, {static_cast<uint32_t>(rank), rule.joined});
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string& spelling = ByteAlphabet::get().spelling(static_cast<uint8_t>(byte));
    byte_ids_[byte] = v.index.find(v.pieces, spelling);
    has_all_bytes_ = has_all_bytes_ && byte_ids_[byte] >= 0;
  }
  if (v.ignore_merges) {
    words_ = StringIndex(v.size());
    for (size_t id = 0; id < v.size(); ++id) {
      if (v.kinds[id] == TokenKind::normal) words_.insert(v.bytes, static_cast<uint32_t>(id));
    }
  }
}

std::string BpeTokenizer::description() const {
  return "byte-level BPE (" + std::string(vocabulary().pre.name) + ")";
}

class BpeTokenizer::BpeRun final : public Run {
 public:
  BpeRun(const BpeTokenizer& owner, size_t num_bytes) : owner_(owner), cache_(num_bytes) {}

  void append(std::string_view text, std::vector<TokenId>& out) override {
    const Vocabulary& v = owner_.vocabulary();
    if (v.normalizer == Normalizer::nfc && !surely_nfc(text)) text = normalized_ = to_nfc(text);
    if (!owner_.has_all_bytes_) text = replace_missing_bytes(text);
    pretokenize(v.pre.rules, text, [&](std::string_view word) { append_word(word, out); });
  }

 private:
  // Ill-formed bytes that are no tokens become U+FFFD. (Well-formed text is left alone: a byte of
  // it that is no token stands for nothing, as in the models' own tokenizers.)
  std::string_view replace_missing_bytes(std::string_view text) {
    const char* const end = text.data() + text.size();
    const auto is_missing = [&](char c) {
      return owner_.byte_ids_[static_cast<unsigned char>(c)] < 0;
    };
    if (std::none_of(text.begin(), text.end(), is_missing)) return text;
    std::string fixed;
    fixed.reserve(text.size());
    for (const char* p = text.data(); p < end;) {
      const Decoded c = decode_utf8(p, end);
      if (!c.valid && std::any_of(p, p + c.size, is_missing)) {
        append_utf8(fixed, kReplacement);
      } else {
        fixed.append(p, c.size);
      }
      p += c.size;
    }
    return fixed_ = std::move(fixed);
  }

  void append_word(std::string_view word, std::vector<TokenId>& out) {
    cache_.append(word, out, [&] { append_new(word, out); });
  }

  void append_new(std::string_view word, std::vector<TokenId>& out) {
    const Vocabulary& v = owner_.vocabulary();
    if (v.ignore_merges) {
      if (const TokenId id = owner_.words_.find(v.bytes, word); id >= 0) return out.push_back(id);
    }
    std::string_view rest = word;
    const auto fill = [&](size_t skip, size_t limit) {
      rest.remove_prefix(skip);
      std::vector<Symbol>& symbols = engine_.symbols();
      symbols.clear();
      symbols.reserve(std::min(rest.size(), limit));
      uint32_t at = 0;
      for (const char c : rest) {
        const TokenId id = owner_.byte_ids_[static_cast<unsigned char>(c)];
        if (id >= 0) {
          if (limit == 0) return false;
          --limit;
          symbols.push_back({id, at, at + 1});
        }
        ++at;
      }
      return true;
    };
    const auto join = [this](const Symbol& left, const Symbol& right) {
      return owner_.pairs_.find(left.id, right.id);
    };
    const auto emit = [&](std::span<const Symbol> tokens) {
      for (const Symbol& token : tokens) out.push_back(token.id);
    };
    const auto restart = [&, first = out.size()] {
      rest = word;
      out.resize(first);
    };
    merge_word(engine_, fill, join, emit, restart);
  }

  const BpeTokenizer& owner_;
  WordCache cache_;
  MergeEngine engine_;
  std::string normalized_, fixed_;  // the text at work, where it differs from the caller's
};

std::unique_ptr<BaseTokenizer::Run> BpeTokenizer::start(size_t num_bytes) const {
  return std::make_unique<BpeRun>(*this, num_bytes);
}

}  // namespace headrace::text
