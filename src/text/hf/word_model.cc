// See word_model.h.
#include "text/hf/word_model.h"

#include "checkpoint/quote_name.h"
#include "text/hf/encode_fault.h"

namespace headrace::text {

std::string ModelSpec::describe() const {
  constexpr const char* kNames[] = {"BPE", "BPE by scores", "Unigram", "WordPiece", "WordLevel"};
  std::string out = kNames[static_cast<size_t>(kind)];
  out += ", unknown " + std::to_string(unknown);
  if (byte_fallback) out += ", byte fall-back";
  if (fuse_unknown) out += ", unknown neighbours are one";
  if (ignore_merges) out += ", words before merges";
  if (!prefix.empty()) out += ", prefix " + quote_name(prefix);
  if (!suffix.empty()) out += ", suffix " + quote_name(suffix);
  if (kind == ModelKind::wordpiece) out += ", words up to " + std::to_string(max_word_chars);
  return out;
}

void ModelSpec::pad(size_t size) {
  in_model.resize(size, false);
  if (!scores.empty()) scores.resize(size, 0);
}

ModelWords::ModelWords(const Vocabulary& vocabulary, const ModelSpec& spec)
    : pieces_(&vocabulary.pieces), index_(vocabulary.size()) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (spec.in_model[id]) index_.insert(vocabulary.pieces, static_cast<uint32_t>(id));
  }
  bytes_.fill(-1);
  if (!spec.byte_fallback) return;
  for (size_t byte = 0; byte < 256; ++byte) {
    constexpr const char* kHexDigits = "0123456789ABCDEF";
    const char piece[] = {'<', '0', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15], '>'};
    bytes_[byte] = vocabulary.index.find(vocabulary.pieces, {piece, sizeof piece});
  }
}

bool ModelWords::append_bytes(std::string_view text, std::vector<TokenId>& out) const {
  const size_t first = out.size();
  for (const char c : text) {
    const TokenId id = byte(c);
    if (id < 0) {
      out.resize(first);
      return false;
    }
    out.push_back(id);
  }
  return true;
}

void no_token_for(std::string_view word) {
  throw EncodeFault{
      Error{ErrorCode::unsupported,
            "the vocabulary has no token for " + quote_name(word) + " and names no unknown token",
            "tokenizer", ""}};
}

std::unique_ptr<const WordModel> make_word_model(const Vocabulary& vocabulary,
                                                 const ModelSpec& spec) {
  switch (spec.kind) {
    case ModelKind::bpe:
    case ModelKind::scored_bpe:
      return make_bpe_model(vocabulary, spec);
    case ModelKind::unigram:
      return make_unigram_model(vocabulary, spec);
    case ModelKind::wordpiece:
    case ModelKind::word_level:
      break;
  }
  return make_word_list_model(vocabulary, spec);
}

}  // namespace headrace::text
