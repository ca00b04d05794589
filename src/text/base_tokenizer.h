// What all tokenizers share: special tokens, BOS and EOS, trusted stretches, decoding. Owns the
// vocabulary and the matcher of special tokens. Must not know how ordinary text is cut.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "text/token_matcher.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace headrace::text {

class BaseTokenizer : public Tokenizer {
 public:
  BaseTokenizer(Vocabulary vocabulary, TokenMatcher matcher);

  int64_t vocab_size() const override { return static_cast<int64_t>(vocabulary_.size()); }
  const SpecialTokens& special() const override { return vocabulary_.special; }
  TokenKind kind(TokenId id) const override;
  std::string_view piece(TokenId id) const override;
  std::string bytes(TokenId id) const override;
  std::optional<TokenId> find(std::string_view piece) const override;
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      const EncodeOptions& options) const override;
  Result<std::vector<TokenId>> encode(std::span<const TextSegment> segments,
                                      bool add_special) const override;
  /// Ids outside the vocabulary stand for nothing.
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  /// Computed when it is asked for.
  const TokenizerFingerprint& fingerprint() const override;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  /// A call to encode: appends the tokens of stretches of ordinary text, in order.
  class Run {
   public:
    virtual ~Run() = default;
    virtual void append(std::string_view text, std::vector<TokenId>& out) = 0;
  };
  virtual std::unique_ptr<Run> start(size_t num_bytes) const = 0;
  /// Whether decoding leaves out one space at the beginning of the text.
  virtual bool strips_first_space() const = 0;
  // What the template wrote.
  using Trusted = TokenMatcher::Trusted;
  /// All of a text, without the tokens around it.
  virtual void append_all(std::string_view text, std::span<const Trusted> trusted,
                          std::vector<TokenId>& out) const;
  /// The special tokens before and behind a text.
  virtual std::span<const TokenId> prefix() const;
  virtual std::span<const TokenId> suffix() const;
  const TokenMatcher& matcher() const { return matcher_; }

 private:
  Result<std::vector<TokenId>> encode_text(std::string_view text, std::span<const Trusted> trusted,
                                           bool add_special) const;

  Vocabulary vocabulary_;
  TokenMatcher matcher_;
  mutable std::once_flag fingerprint_once_;
  mutable TokenizerFingerprint fingerprint_;
};

/// The tokenizer for a vocabulary; `key` names its list of tokens in errors.
Result<std::shared_ptr<const Tokenizer>> build_tokenizer(Vocabulary vocabulary,
                                                         std::string_view key);

/// Hex SHA-256 over the tokens (unused ones do not count), the merges of a byte-level vocabulary,
/// what stands around a text, and the tokens of tokenizer_texts(): not over the rules that a file's
/// format spells one way or another.
TokenizerFingerprint fingerprint_of(const BaseTokenizer& tokenizer);

}  // namespace headrace::text
