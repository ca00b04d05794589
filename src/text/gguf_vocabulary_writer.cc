// See gguf_vocabulary_writer.h. The keys: GGUF specification (ggml, docs/gguf.md), section
// Tokenizer.
#include "text/gguf_vocabulary_writer.h"

#include <utility>
#include <vector>

#include "text/base_tokenizer.h"
#include "text/hf/sentencepiece_form.h"

namespace headrace {
namespace {

using text::Algorithm;
using text::Vocabulary;

std::string gguf_key(std::string_view name) {
  return "tokenizer.ggml." + std::string(name);
}

std::string_view model_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::byte_level_bpe:
      return "gpt2";
    case Algorithm::sentencepiece_bpe:
      return "llama";
    case Algorithm::wordpiece:
      return "bert";
    case Algorithm::pipeline:
      break;
  }
  return "";
}

void put_pieces(const Vocabulary& vocabulary, const std::vector<TokenKind>& kinds,
                Metadata& metadata) {
  std::vector<std::string_view> tokens;
  std::vector<int64_t> types;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    tokens.push_back(vocabulary.pieces[id]);
    types.push_back(static_cast<int64_t>(kinds[id]));
  }
  metadata.set(gguf_key("tokens"), std::move(tokens));
  metadata.set(gguf_key("token_type"), std::move(types));
}

void put_merges(const Vocabulary& vocabulary, Metadata& metadata, std::deque<std::string>& texts) {
  std::vector<std::string_view> merges;
  merges.reserve(vocabulary.merges.size());
  for (const text::MergeRule& rule : vocabulary.merges) {
    std::string merge(vocabulary.pieces[static_cast<size_t>(rule.left)]);
    merge += ' ';
    merge += vocabulary.pieces[static_cast<size_t>(rule.right)];
    texts.push_back(std::move(merge));
    merges.push_back(texts.back());
  }
  metadata.set(gguf_key("merges"), std::move(merges));
}

void put_scores(const std::vector<float>& scores, bool space_prefix, Metadata& metadata) {
  metadata.set(gguf_key("scores"), std::vector<double>(scores.begin(), scores.end()));
  metadata.set(gguf_key("add_space_prefix"), space_prefix);
}

void put_special(const SpecialTokens& special, Metadata& metadata) {
  const auto put = [&](std::string_view name, TokenId id) {
    if (id >= 0) metadata.set(gguf_key(name), static_cast<uint64_t>(id));
  };
  put("bos_token_id", special.bos);
  put("eos_token_id", special.eos);
  put("unknown_token_id", special.unk);
  put("padding_token_id", special.pad);
  put("seperator_token_id", special.sep);  // so the format's authors spell it
  put("cls_token_id", special.cls);
  put("mask_token_id", special.mask);
  // There are two keys for more ends of generation than eos.
  std::vector<TokenId> ends;
  for (const TokenId id : special.end_of_generation) {
    if (id != special.eos) ends.push_back(id);
  }
  if (!ends.empty()) put("eot_token_id", ends[0]);
  if (ends.size() > 1) put("eom_token_id", ends[1]);
  metadata.set(gguf_key("add_bos_token"), special.add_bos);
  metadata.set(gguf_key("add_eos_token"), special.add_eos);
}

/// The control tokens with text between them.
std::string text_of_control(const Vocabulary& vocabulary) {
  std::string text;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kinds[id] != TokenKind::control) continue;
    if (static_cast<TokenId>(id) == vocabulary.special.unk) continue;
    text.append(" a ").append(vocabulary.pieces[id]).append(" b");
  }
  return text;
}

}  // namespace

Result<void> put_gguf_vocabulary(const Tokenizer& tokenizer, Metadata& metadata,
                                 std::deque<std::string>& texts) {
  const auto* base = dynamic_cast<const text::BaseTokenizer*>(&tokenizer);
  if (base == nullptr) {
    return Error{ErrorCode::unsupported, "the model has no tokenizer, token ids alone", "", ""};
  }
  const Vocabulary& vocabulary = base->vocabulary();
  if (const auto form = text::sentencepiece_form(vocabulary)) {
    metadata.set(gguf_key("model"), model_of(Algorithm::sentencepiece_bpe));
    put_pieces(vocabulary, form->kinds, metadata);
    put_scores(form->scores, form->space_prefix, metadata);
    put_special(vocabulary.special, metadata);
    return {};
  }
  const std::string_view model = model_of(vocabulary.algorithm);
  if (model.empty()) {
    return Error{ErrorCode::unsupported, "GGUF has no words for the steps of this tokenizer", "",
                 "tokenizer.json stays the one to use"};
  }
  metadata.set(gguf_key("model"), model);
  put_pieces(vocabulary, vocabulary.kinds, metadata);
  if (vocabulary.algorithm == Algorithm::byte_level_bpe) {
    metadata.set(gguf_key("pre"), vocabulary.pre.name);
    put_merges(vocabulary, metadata, texts);
  }
  if (vocabulary.algorithm == Algorithm::sentencepiece_bpe) {
    put_scores(vocabulary.scores, vocabulary.space_prefix, metadata);
  }
  put_special(vocabulary.special, metadata);
  return {};
}

bool same_as_written(const Tokenizer& tokenizer, const Metadata& metadata) {
  const auto written = make_tokenizer(metadata, {});
  if (!written.ok() || (*written)->fingerprint() != tokenizer.fingerprint()) return false;
  const auto* base = dynamic_cast<const text::BaseTokenizer*>(&tokenizer);
  if (base == nullptr) return true;
  const auto form = text::sentencepiece_form(base->vocabulary());
  if (form && !form->is_same) return false;
  const std::string text = text_of_control(base->vocabulary());
  const EncodeOptions parsed{.add_special = false, .parse_special = true};
  const auto wanted = tokenizer.encode(text, parsed);
  const auto found = (*written)->encode(text, parsed);
  return wanted.ok() && found.ok() && *wanted == *found;
}

}  // namespace headrace
