// See wordpiece_tokenizer.h. The rules are those of BERT's basic tokenizer and WordPiece
// (google-research/bert, tokenization.py).
#include "text/wordpiece_tokenizer.h"

#include <algorithm>

#include "text/unicode.h"

namespace headrace::text {
namespace {

constexpr size_t kMaxWordChars = 100;  // a longer word is unknown

// Written without spaces between words: every character is a word. The blocks BERT names.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// All of ASCII that is neither letter, digit, space nor control counts, "$" and "^" too.
bool is_punctuation(char32_t c) {
  if (c < 0x80) return (CharTable::get().of(c) & (kPunct | kSymbol)) != 0;
  return (CharTable::get().of(c) & kPunct) != 0;
}

bool is_dropped(char32_t c) {
  return c == 0 || c == kReplacement || is_other(c);
}

}  // namespace

Result<void> WordpieceTokenizer::check(const Vocabulary& vocabulary, std::string_view key) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.pieces[id].starts_with(kSpaceMark)) return {};
  }
  return Error{ErrorCode::corrupt_data,
               "expected WordPiece pieces that begin words with U+2581, found none",
               std::string(key), ""};
}

WordpieceTokenizer::WordpieceTokenizer(Vocabulary vocabulary, TokenMatcher matcher)
    : BaseTokenizer(std::move(vocabulary), std::move(matcher)) {
  const Vocabulary& v = this->vocabulary();
  for (size_t id = 0; id < v.size(); ++id) {
    if (v.kinds[id] != TokenKind::normal) continue;
    const std::string_view piece = v.pieces[id];
    longest_ = std::max(longest_, piece.size());
    // "[unused7]" and the like are no capitals; a vocabulary with case has thousands.
    lower_case_ = lower_case_ && std::none_of(piece.begin(), piece.end(),
                                              [](char c) { return c >= 'A' && c <= 'Z'; });
  }
}

class WordpieceTokenizer::WordpieceRun final : public Run {
 public:
  explicit WordpieceRun(const WordpieceTokenizer& owner) : owner_(owner) {}

  void append(std::string_view text, std::vector<TokenId>& out) override {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const Decoded c = decode_utf8(p, end);
      p += c.size;
      if (is_space(c.code)) {
        finish_word(out);
      } else if (!is_dropped(c.code)) {
        append_char(c.code, out);
      }
    }
    finish_word(out);
  }

 private:
  void append_char(char32_t code, std::vector<TokenId>& out) {
    if (is_ideograph(code)) {
      finish_word(out);
      extend_word(code);
      finish_word(out);
      return;
    }
    if (!owner_.lower_case_) return append_plain(code, out);
    parts_.clear();
    append_decomposed(parts_, code);
    for (const char32_t part : parts_) {
      if (!is_nonspacing_mark(part)) append_plain(to_lower(part), out);
    }
  }

  void append_plain(char32_t code, std::vector<TokenId>& out) {
    if (!is_punctuation(code)) return extend_word(code);
    finish_word(out);
    extend_word(code);
    finish_word(out);
  }

  void extend_word(char32_t code) {
    // What is past the limit does not change the outcome: the word is unknown already.
    if (num_chars_ <= kMaxWordChars) append_utf8(word_, code);
    ++num_chars_;
  }

  void finish_word(std::vector<TokenId>& out) {
    if (num_chars_ == 0) return;
    const size_t first = out.size();
    if (num_chars_ > kMaxWordChars || !cut(out)) {
      out.resize(first);
      if (const TokenId unknown = owner_.vocabulary().special.unk; unknown >= 0) {
        out.push_back(unknown);
      }
    }
    num_chars_ = 0;
    word_.assign(kSpaceMark);
  }

  // The longest piece at the beginning, then again with the rest; false if there is none.
  bool cut(std::vector<TokenId>& out) const {
    const Vocabulary& v = owner_.vocabulary();
    const std::string_view word = word_;
    for (size_t begin = 0; begin < word.size();) {
      size_t end = std::min(word.size(), begin + owner_.longest_);
      TokenId id = -1;
      for (; end > begin; --end) {
        const bool splits_char =
            end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80;
        if (splits_char) continue;
        id = v.index.find(v.pieces, word.substr(begin, end - begin));
        if (id >= 0 && v.kinds[static_cast<size_t>(id)] == TokenKind::normal) break;
        id = -1;
      }
      // The mark alone is not a piece of the word.
      if (id < 0 || (begin == 0 && end == kSpaceMark.size())) return false;
      out.push_back(id);
      begin = end;
    }
    return true;
  }

  const WordpieceTokenizer& owner_;
  std::string word_{kSpaceMark};  // the beginning of a word is spelled with the mark
  size_t num_chars_ = 0;
  std::vector<char32_t> parts_;
};

std::unique_ptr<BaseTokenizer::Run> WordpieceTokenizer::start(size_t) const {
  return std::make_unique<WordpieceRun>(*this);
}

}  // namespace headrace::text
