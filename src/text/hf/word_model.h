// The last step of an encoding: a word to tokens. Owns what a model needs besides the vocabulary.
// Must not know how text is cut into words.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace headrace::text {

enum class ModelKind : uint8_t { bpe, scored_bpe, unigram, wordpiece, word_level };

/// What a file says of its model. Lists by id have an entry for every token.
struct ModelSpec {
  ModelKind kind = ModelKind::bpe;
  std::vector<bool> in_model;   ///< by id: whether a word can become it (added tokens are others)
  std::vector<double> scores;   ///< unigram and scored BPE: by id
  TokenId unknown = -1;         ///< what stands for a part without a token; -1: none
  bool byte_fallback = false;   ///< such a part becomes its bytes ("<0x0A>") if all are tokens
  bool fuse_unknown = false;    ///< neighbours without a token become one
  bool ignore_merges = false;   ///< BPE: a word that is a token is that token
  std::string prefix;           ///< of what does not begin a word (BPE, WordPiece)
  std::string suffix;           ///< of what ends a word (BPE)
  size_t max_word_chars = 100;  ///< WordPiece: longer words are unknown

  /// Brings the lists by id to this size: no word can become the ids that are new.
  void pad(size_t size);

  /// One line with all but the lists.
  std::string describe() const;
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  /// A call to encode: words in order. May throw EncodeFault (unsupported): a part without a token,
  /// where the file names none for it.
  class Run {
   public:
    virtual ~Run() = default;
    virtual void append(std::string_view word, std::vector<TokenId>& out) = 0;
  };
  /// `num_bytes`: of the text to come.
  virtual std::unique_ptr<Run> start(size_t num_bytes) const = 0;
};

/// `vocabulary` must outlive the model. `spec` is taken over but for what only the guard compares.
std::unique_ptr<const WordModel> make_word_model(const Vocabulary& vocabulary,
                                                 const ModelSpec& spec);

/// The tokens of a model by their text.
class ModelWords {
 public:
  ModelWords(const Vocabulary& vocabulary, const ModelSpec& spec);
  TokenId find(std::string_view piece) const { return index_.find(*pieces_, piece); }
  /// The token of a byte, or -1.
  TokenId byte(char c) const { return bytes_[static_cast<unsigned char>(c)]; }
  /// Appends the tokens of the bytes if there is one for each.
  bool append_bytes(std::string_view text, std::vector<TokenId>& out) const;

 private:
  const StringPool* pieces_;
  StringIndex index_;
  std::array<TokenId, 256> bytes_;
};

std::unique_ptr<const WordModel> make_bpe_model(const Vocabulary& vocabulary,
                                                const ModelSpec& spec);
std::unique_ptr<const WordModel> make_unigram_model(const Vocabulary& vocabulary,
                                                    const ModelSpec& spec);
std::unique_ptr<const WordModel> make_word_list_model(const Vocabulary& vocabulary,
                                                      const ModelSpec& spec);

/// Error for a word without tokens in a file that names no unknown token.
[[noreturn]] void no_token_for(std::string_view word);

}  // namespace headrace::text
