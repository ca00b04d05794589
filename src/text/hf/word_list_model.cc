// WordPiece, the longest pieces from left to right, and WordLevel, whole words. The rules: Hugging
// Face tokenizers, src/models/wordpiece and src/models/wordlevel.
#include <algorithm>

#include "text/hf/word_model.h"
#include "text/unicode.h"
#include "text/word_cache.h"

namespace headrace::text {
namespace {

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

class WordListModel final : public WordModel {
 public:
  WordListModel(const Vocabulary& vocabulary, const ModelSpec& spec)
      : words_(vocabulary, spec),
        unknown_(spec.unknown),
        prefix_(spec.prefix),
        most_chars_(spec.max_word_chars),
        in_pieces_(spec.kind == ModelKind::wordpiece) {
    for (size_t id = 0; id < vocabulary.size(); ++id) {
      if (spec.in_model[id]) longest_ = std::max(longest_, vocabulary.pieces[id].size());
    }
  }

  std::unique_ptr<Run> start(size_t num_bytes) const override;

 private:
  friend class WordListRun;

  ModelWords words_;
  TokenId unknown_;
  std::string prefix_;
  size_t most_chars_;
  size_t longest_ = 0;  ///< bytes
  bool in_pieces_;
};

class WordListRun final : public WordModel::Run {
 public:
  WordListRun(const WordListModel& owner, size_t num_bytes) : owner_(owner), cache_(num_bytes) {}

  void append(std::string_view word, std::vector<TokenId>& out) override {
    cache_.append(word, out, [&] { append_new(word, out); });
  }

 private:
  void append_new(std::string_view word, std::vector<TokenId>& out) {
    const size_t first = out.size();
    if (owner_.in_pieces_) {
      if (count_characters(word) <= owner_.most_chars_ && cut(word, out)) return;
    } else if (const TokenId id = owner_.words_.find(word); id >= 0) {
      return out.push_back(id);
    }
    out.resize(first);
    if (owner_.unknown_ < 0) no_token_for(word);
    out.push_back(owner_.unknown_);
  }

  bool cut(std::string_view word, std::vector<TokenId>& out) {
    for (size_t begin = 0; begin < word.size();) {
      spelled_ = begin > 0 ? owner_.prefix_ : std::string();
      const size_t extra = spelled_.size();
      spelled_ += word.substr(begin, owner_.longest_);
      const std::string_view all = spelled_;
      size_t end = all.size();
      TokenId id = -1;
      for (; end > extra; --end) {
        const bool splits_char =
            begin + (end - extra) < word.size() &&
            (static_cast<unsigned char>(word[begin + (end - extra)]) & 0xC0) == 0x80;
        if (splits_char) continue;
        id = owner_.words_.find(all.substr(0, end));
        if (id >= 0) break;
      }
      if (id < 0) return false;
      out.push_back(id);
      begin += end - extra;
    }
    return true;
  }

  const WordListModel& owner_;
  WordCache cache_;
  std::string spelled_;
};

std::unique_ptr<WordModel::Run> WordListModel::start(size_t num_bytes) const {
  return std::make_unique<WordListRun>(*this, num_bytes);
}

}  // namespace

std::unique_ptr<const WordModel> make_word_list_model(const Vocabulary& vocabulary,
                                                      const ModelSpec& spec) {
  return std::make_unique<WordListModel>(vocabulary, spec);
}

}  // namespace headrace::text
