// Small vocabularies for tests: metadata in memory, as a GGUF file would give it.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/metadata.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace headrace::text {

/// Builds `tokenizer.ggml.*` token by token. Owns the strings that the metadata points to.
class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(std::string model) {
    set("tokenizer.ggml.model", keep(std::move(model)));
  }

  TokenId token(std::string piece, TokenKind kind = TokenKind::normal, double score = 0) {
    tokens_.push_back(keep(std::move(piece)));
    kinds_.push_back(static_cast<int64_t>(kind));
    scores_.push_back(score);
    return static_cast<TokenId>(tokens_.size() - 1);
  }
  /// All 256 bytes in GPT-2's spelling.
  void byte_level_alphabet() {
    for (int byte = 0; byte < 256; ++byte) {
      token(ByteAlphabet::get().spelling(static_cast<uint8_t>(byte)));
    }
  }
  /// A merge and the token it gives.
  TokenId merge(const std::string& left, const std::string& right) {
    merges_.push_back(keep(left + " " + right));
    return token(left + right);
  }
  /// <0x00> to <0xFF>.
  void byte_tokens() {
    for (int byte = 0; byte < 256; ++byte) {
      std::string piece = "<0x";
      piece += "0123456789ABCDEF"[byte >> 4];
      piece += "0123456789ABCDEF"[byte & 15];
      token(piece + ">", TokenKind::byte);
    }
  }
  void set(const std::string& key, MetaValue value) { metadata_.set(key, std::move(value)); }
  void set_text(const std::string& key, std::string value) { set(key, keep(std::move(value))); }

  Metadata& metadata() {
    metadata_.set("tokenizer.ggml.tokens", tokens_);
    metadata_.set("tokenizer.ggml.token_type", kinds_);
    metadata_.set("tokenizer.ggml.scores", scores_);
    metadata_.set("tokenizer.ggml.merges", merges_);
    return metadata_;
  }
  std::shared_ptr<const Tokenizer> build() {
    auto made = make_tokenizer(metadata(), {});
    return made.ok() ? *made : nullptr;
  }

 private:
  std::string_view keep(std::string text) { return strings_.emplace_back(std::move(text)); }

  std::deque<std::string> strings_;
  Metadata metadata_;
  std::vector<std::string_view> tokens_;
  std::vector<int64_t> kinds_;
  std::vector<double> scores_;
  std::vector<std::string_view> merges_;
};

/// Bytes, "he" "ll" "hell" "hello" "Ġhello", <s> </s> <|im_start|> <|im_end|> (control) and
/// <think> (user-defined). Adds no BOS.
inline VocabularyBuilder byte_level_example() {
  VocabularyBuilder builder("gpt2");
  builder.set_text("tokenizer.ggml.pre", "gpt-2");
  builder.byte_level_alphabet();
  builder.merge("h", "e");
  builder.merge("l", "l");
  builder.merge("he", "ll");
  builder.merge("hell", "o");
  builder.merge("\xC4\xA0", "hello");
  const TokenId bos = builder.token("<s>", TokenKind::control);
  const TokenId eos = builder.token("</s>", TokenKind::control);
  builder.token("<|im_start|>", TokenKind::control);
  builder.token("<|im_end|>", TokenKind::control);
  builder.token("<think>", TokenKind::user_defined);
  builder.set("tokenizer.ggml.bos_token_id", uint64_t{static_cast<uint32_t>(bos)});
  builder.set("tokenizer.ggml.eos_token_id", uint64_t{static_cast<uint32_t>(eos)});
  return builder;
}

/// <unk> <s> </s>, bytes, "▁", "a", "b", "▁a", "▁▁", "ab", "▁ab" and <sep> (user-defined). As the
/// LLaMA vocabulary does: long runs of spaces have the worst scores.
inline VocabularyBuilder sentencepiece_example() {
  VocabularyBuilder builder("llama");
  const std::string space(kSpaceMark);
  builder.token("<unk>", TokenKind::unknown);
  builder.token("<s>", TokenKind::control);
  builder.token("</s>", TokenKind::control);
  builder.byte_tokens();
  builder.token(space + space, TokenKind::normal, -1e9);
  builder.token(space + "a", TokenKind::normal, -1);
  builder.token("ab", TokenKind::normal, -2);
  builder.token(space + "ab", TokenKind::normal, -3);
  builder.token(space, TokenKind::normal, -10);
  builder.token("a", TokenKind::normal, -11);
  builder.token("b", TokenKind::normal, -12);
  builder.token("<sep>", TokenKind::user_defined);
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.bos_token_id", uint64_t{1});
  builder.set("tokenizer.ggml.eos_token_id", uint64_t{2});
  return builder;
}

using Pieces = std::vector<std::string>;

/// The pieces of ids, for readable expectations.
inline Pieces pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Pieces out;
  for (const TokenId id : ids) out.emplace_back(tokenizer.piece(id));
  return out;
}

}  // namespace headrace::text
