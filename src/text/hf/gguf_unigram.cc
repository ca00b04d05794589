// SentencePiece Unigram models in GGUF files; see sentencepiece.h. The keys: ggml, docs/gguf.md.
#include "text/hf/sentencepiece.h"

namespace headrace::text {

Result<std::shared_ptr<const Tokenizer>> build_gguf_unigram(const Metadata& metadata,
                                                            Vocabulary vocabulary) {
  SentencePieceModel model;
  model.vocabulary = std::move(vocabulary);
  const std::string prefix = "tokenizer.ggml.";
  HEADRACE_ASSIGN(const auto add_prefix, metadata.get_bool(prefix + "add_space_prefix"));
  HEADRACE_ASSIGN(const auto remove, metadata.get_bool(prefix + "remove_extra_whitespaces"));
  HEADRACE_ASSIGN(const auto charsmap, metadata.get_ints(prefix + "precompiled_charsmap"));
  model.rules.add_dummy_prefix = add_prefix.value_or(true);
  model.rules.remove_extra_whitespaces = remove.value_or(false);
  if (charsmap && charsmap->size() > 0) {
    std::string blob;
    blob.reserve(charsmap->size());
    for (size_t i = 0; i < charsmap->size(); ++i) blob += static_cast<char>((*charsmap)[i]);
    auto made = Charsmap::make(blob);
    if (!made.ok()) {
      Error error = std::move(made).error();
      error.where = prefix + "precompiled_charsmap";
      return error;
    }
    model.rules.charsmap = std::move(*made);
  }
  return build_sentencepiece(std::move(model), HfFiles(), prefix + "tokens");
}

}  // namespace headrace::text
