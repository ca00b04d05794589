// Chooses the tokenizer for a vocabulary; see tokenizer.h.
#include "text/tokenizer.h"

#include "text/bpe_tokenizer.h"
#include "text/hf/sentencepiece.h"
#include "text/spm_tokenizer.h"
#include "text/wordpiece_tokenizer.h"

namespace headrace {
namespace {

/// Tokens whose text does not depend on others, but for a rule at the beginning.
class PlainStream final : public TokenStream {
 public:
  PlainStream(const Tokenizer& tokenizer, bool skip_special, bool goes_on)
      : tokenizer_(tokenizer), skip_special_(skip_special), at_start_(!goes_on) {}

  void push(TokenId id, std::string& out) override {
    if (id < 0 || id >= tokenizer_.vocab_size()) return;
    const TokenKind kind = tokenizer_.kind(id);
    const bool hidden = kind == TokenKind::control || kind == TokenKind::unknown;
    if (hidden && skip_special_) return;
    // decode() of one token alone applies the rule for the beginning of a text.
    if (at_start_ && !hidden) {
      at_start_ = false;
      out += tokenizer_.decode({&id, 1}, false);
    } else {
      out += tokenizer_.bytes(id);
    }
  }
  void finish(std::string&) override {}

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  bool at_start_;
};

}  // namespace

std::unique_ptr<TokenStream> Tokenizer::start_decoding(bool skip_special, bool goes_on) const {
  return std::make_unique<PlainStream>(*this, skip_special, goes_on);
}

Result<TokenPair> Tokenizer::encode_pair(std::string_view, std::string_view) const {
  return Error{ErrorCode::unsupported, "the tokenizer has no rule for two texts", "", ""};
}

namespace text {

Result<std::shared_ptr<const Tokenizer>> build_tokenizer(Vocabulary vocabulary,
                                                         std::string_view key) {
  HEADRACE_ASSIGN(TokenMatcher matcher, TokenMatcher::make(vocabulary, key));
  std::shared_ptr<const Tokenizer> made;
  switch (vocabulary.algorithm) {
    case Algorithm::byte_level_bpe:
      made = std::make_shared<BpeTokenizer>(std::move(vocabulary), std::move(matcher));
      break;
    case Algorithm::sentencepiece_bpe:
      made = std::make_shared<SpmTokenizer>(std::move(vocabulary), std::move(matcher));
      break;
    case Algorithm::wordpiece:
      HEADRACE_TRY(WordpieceTokenizer::check(vocabulary, key));
      made = std::make_shared<WordpieceTokenizer>(std::move(vocabulary), std::move(matcher));
      break;
    case Algorithm::pipeline:  // build_pipeline() makes these
      return Error{ErrorCode::internal, "a pipeline needs its steps", std::string(key), ""};
  }
  return made;
}

}  // namespace text

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const Metadata& metadata,
                                                        const TokenizerOptions& options) {
  HEADRACE_ASSIGN(text::Vocabulary vocabulary, text::read_gguf_vocabulary(metadata, options));
  if (vocabulary.algorithm == text::Algorithm::pipeline) {
    return text::build_gguf_unigram(metadata, std::move(vocabulary));
  }
  return text::build_tokenizer(std::move(vocabulary), "tokenizer.ggml.tokens");
}

}  // namespace headrace
