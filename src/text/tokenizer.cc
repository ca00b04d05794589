// Chooses the tokenizer for a vocabulary; see tokenizer.h.
#include "text/tokenizer.h"

#include "text/bpe_tokenizer.h"
#include "text/spm_tokenizer.h"
#include "text/wordpiece_tokenizer.h"

namespace headrace {
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
  }
  return made;
}

}  // namespace text

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const Metadata& metadata,
                                                        const TokenizerOptions& options) {
  HEADRACE_ASSIGN(text::Vocabulary vocabulary, text::read_gguf_vocabulary(metadata, options));
  return text::build_tokenizer(std::move(vocabulary), "tokenizer.ggml.tokens");
}

}  // namespace headrace
