// An opened model for tests: random weights, and a tokenizer to which any text is numbers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/open_model.h"
#include "backend/cpu/cpu_backend.h"
#include "tests/tiny_models.h"

namespace headrace {

/// Any text is the tokens 0 to 49, over and over. Token 3 is a control token.
class CountingTokenizer final : public Tokenizer {
 public:
  std::string description() const override { return "counting"; }
  int64_t vocab_size() const override { return 50; }
  const SpecialTokens& special() const override { return special_; }
  TokenKind kind(TokenId id) const override {
    return id == 3 ? TokenKind::control : TokenKind::normal;
  }
  std::string_view piece(TokenId) const override { return "x"; }
  std::string bytes(TokenId) const override { return "x"; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<TokenId> ids(text.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i % 50);
    return ids;
  }
  Result<std::vector<TokenId>> encode(std::span<const TextSegment>, bool) const override {
    return std::vector<TokenId>{};
  }
  std::string decode(std::span<const TokenId>, bool) const override { return ""; }
  const TokenizerFingerprint& fingerprint() const override { return fingerprint_; }

 private:
  SpecialTokens special_;
  TokenizerFingerprint fingerprint_;
};

inline OpenedModel tiny_opened_model(const test::TinyOptions& options) {
  const std::string path = testing::TempDir() + "tiny_opened_model.gguf";
  test::tiny_model(options).file.write(path);
  OpenedModel opened;
  opened.checkpoint = std::move(open_checkpoint(path).value());
  opened.tokenizer = std::make_shared<CountingTokenizer>();
  opened.backend = make_cpu_backend({.isa = available_isas().back(), .num_threads = 1});
  opened.model = std::move(load_model(*opened.checkpoint, *opened.backend, {}).value());
  opened.options.chunk_tokens = 16;
  opened.context = options.context;
  opened.kv_budget_bytes = uint64_t{1} << 30;
  std::filesystem::remove(path);
  return opened;
}

}  // namespace headrace
