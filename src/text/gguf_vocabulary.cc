// Reads `tokenizer.ggml.*`. The keys: GGUF specification (ggml, docs/gguf.md), section Tokenizer.
#include <cmath>

#include "checkpoint/quote_name.h"
#include "text/vocabulary.h"

namespace headrace::text {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";
constexpr size_t kMaxPieceBytes = size_t{1} << 30;

std::string key(std::string_view name) {
  return std::string(kPrefix) + std::string(name);
}

Error bad_key(std::string_view name, std::string message) {
  return Error{ErrorCode::corrupt_data, std::move(message), key(name), ""};
}

// The id under `name`, -1 if absent. Files write "none" as the largest 32-bit number.
Result<TokenId> read_id(const Metadata& metadata, const Vocabulary& vocabulary,
                        std::string_view name) {
  HEADRACE_ASSIGN(const std::optional<int64_t> id, metadata.get_int(key(name)));
  if (!id || *id == -1 || *id == UINT32_MAX) return TokenId{-1};
  if (!vocabulary.is_id(*id)) {
    return bad_key(name, "expected a token id below " + std::to_string(vocabulary.size()) +
                             ", found " + std::to_string(*id));
  }
  return static_cast<TokenId>(*id);
}

Result<void> read_pieces(const Metadata& metadata, Vocabulary& vocabulary) {
  HEADRACE_ASSIGN(const auto tokens, metadata.get_strings(key("tokens")));
  if (!tokens) return bad_key("tokens", "the file has no tokens");
  const size_t n = tokens->size();
  if (n == 0 || n > kMaxVocabularySize) {
    return bad_key("tokens", "expected 1 to " + std::to_string(kMaxVocabularySize) +
                                 " tokens, found " + std::to_string(n));
  }
  size_t num_bytes = 0;
  for (const std::string_view token : *tokens) {
    num_bytes += token.size();
    if (num_bytes > kMaxPieceBytes) return bad_key("tokens", "the tokens take more than 1 GiB");
  }
  vocabulary.pieces.reserve(n, num_bytes);
  for (const std::string_view token : *tokens) vocabulary.pieces.add(token);
  return {};
}

Result<void> read_kinds(const Metadata& metadata, Vocabulary& vocabulary) {
  const size_t n = vocabulary.size();
  vocabulary.kinds.assign(n, TokenKind::normal);
  HEADRACE_ASSIGN(const auto types, metadata.get_ints(key("token_type")));
  if (!types) return {};
  if (types->size() != n) {
    return bad_key("token_type", "expected " + std::to_string(n) + " entries as in tokens, found " +
                                     std::to_string(types->size()));
  }
  for (size_t i = 0; i < n; ++i) {
    const int64_t type = (*types)[i];
    if (type < 0 || type > 6) {
      return bad_key("token_type", "token " + std::to_string(i) +
                                       ": expected a type of 0 to 6, found " +
                                       std::to_string(type));
    }
    // 0 means undefined: nothing says that it is not plain text.
    if (type != 0) vocabulary.kinds[i] = static_cast<TokenKind>(type);
    if (vocabulary.kinds[i] != TokenKind::normal && is_padding_row(vocabulary.pieces[i], i)) {
      vocabulary.kinds[i] = TokenKind::unused;
    }
  }
  return {};
}

Result<void> read_scores(const Metadata& metadata, Vocabulary& vocabulary) {
  HEADRACE_ASSIGN(const auto scores, metadata.get_floats(key("scores")));
  if (!scores) return bad_key("scores", "a SentencePiece vocabulary needs scores");
  if (scores->size() != vocabulary.size()) {
    return bad_key("scores", "expected " + std::to_string(vocabulary.size()) +
                                 " entries as in tokens, found " + std::to_string(scores->size()));
  }
  vocabulary.scores.reserve(scores->size());
  for (size_t i = 0; i < scores->size(); ++i) {
    if (!std::isfinite((*scores)[i])) {
      return bad_key("scores", "token " + std::to_string(i) + ": the score is not a finite number");
    }
    vocabulary.scores.push_back(static_cast<float>((*scores)[i]));
  }
  return {};
}

Result<void> read_merges(const Metadata& metadata, Vocabulary& vocabulary) {
  HEADRACE_ASSIGN(const auto merges, metadata.get_strings(key("merges")));
  if (!merges) return bad_key("merges", "a byte-level BPE vocabulary needs merges");
  vocabulary.merges.reserve(merges->size());
  std::string joined;
  for (size_t i = 0; i < merges->size(); ++i) {
    const std::string_view merge = (*merges)[i];
    const auto fail = [&](std::string_view what) {
      return bad_key("merges", "merge " + std::to_string(i) + " " + quote_name(merge) + ": " +
                                   std::string(what));
    };
    // A part may not be empty, so that the space is looked for from the second byte on.
    const size_t space = merge.find(' ', 1);
    if (space == merge.npos || space + 1 == merge.size()) {
      return fail("expected two pieces with a space between");
    }
    joined.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const auto find = [&](std::string_view piece) {
      return vocabulary.index.find(vocabulary.pieces, piece);
    };
    const MergeRule rule{find(merge.substr(0, space)), find(merge.substr(space + 1)), find(joined)};
    if (rule.left < 0 || rule.right < 0 || rule.joined < 0) {
      return fail("a part of it, or what it gives, is not a token");
    }
    vocabulary.merges.push_back(rule);
  }
  return {};
}

Result<void> read_special(const Metadata& metadata, Vocabulary& vocabulary) {
  SpecialTokens& special = vocabulary.special;
  const auto read = [&](TokenId& out, std::string_view name) -> Result<void> {
    HEADRACE_ASSIGN(out, read_id(metadata, vocabulary, name));
    return {};
  };
  HEADRACE_TRY(read(special.bos, "bos_token_id"));
  HEADRACE_TRY(read(special.eos, "eos_token_id"));
  HEADRACE_TRY(read(special.unk, "unknown_token_id"));
  HEADRACE_TRY(read(special.pad, "padding_token_id"));
  HEADRACE_TRY(read(special.sep, "seperator_token_id"));  // so the format's authors spell it
  if (special.sep < 0) HEADRACE_TRY(read(special.sep, "separator_token_id"));
  HEADRACE_TRY(read(special.cls, "cls_token_id"));
  HEADRACE_TRY(read(special.mask, "mask_token_id"));
  std::vector<TokenId> ends;
  for (const std::string_view name : {"eot_token_id", "eom_token_id"}) {
    HEADRACE_ASSIGN(const TokenId id, read_id(metadata, vocabulary, name));
    if (id >= 0) ends.push_back(id);
  }
  if (metadata.find(key("token_type")) == nullptr) {
    // The file does not tell control tokens from text: those it names are.
    for (const TokenId id :
         {special.bos, special.eos, special.pad, special.sep, special.cls, special.mask}) {
      if (id >= 0) vocabulary.kinds[static_cast<size_t>(id)] = TokenKind::control;
    }
    for (const TokenId id : ends) vocabulary.kinds[static_cast<size_t>(id)] = TokenKind::control;
  }
  const bool is_wordpiece = vocabulary.algorithm == Algorithm::wordpiece;
  if (is_wordpiece && special.bos < 0) special.bos = special.cls;
  if (is_wordpiece && special.eos < 0) special.eos = special.sep;

  const bool sentencepiece = vocabulary.algorithm == Algorithm::sentencepiece_bpe;
  HEADRACE_ASSIGN(const auto add_bos, metadata.get_bool(key("add_bos_token")));
  HEADRACE_ASSIGN(const auto add_eos, metadata.get_bool(key("add_eos_token")));
  const bool bos_default = sentencepiece || is_wordpiece || vocabulary.pre.add_bos;
  special.add_bos = add_bos.value_or(bos_default && special.bos >= 0);
  const bool is_unigram = vocabulary.algorithm == Algorithm::pipeline;
  special.add_eos = add_eos.value_or((is_wordpiece || is_unigram) && special.eos >= 0);
  if (special.add_bos && special.bos < 0)
    return bad_key("bos_token_id", "add_bos_token needs this id");
  if (special.add_eos && special.eos < 0)
    return bad_key("eos_token_id", "add_eos_token needs this id");
  find_end_tokens(vocabulary, ends);
  return {};
}

Result<Algorithm> read_algorithm(const Metadata& metadata) {
  HEADRACE_ASSIGN(const auto model, metadata.get_string(key("model")));
  if (!model) {
    return Error{ErrorCode::not_found, "the file names no kind of tokenizer", key("model"), ""};
  }
  if (*model == "gpt2") return Algorithm::byte_level_bpe;
  if (*model == "llama") return Algorithm::sentencepiece_bpe;
  if (*model == "bert") return Algorithm::wordpiece;
  if (*model == "t5") return Algorithm::pipeline;
  return Error{ErrorCode::unsupported,
               "expected a tokenizer of kind gpt2, llama, bert or t5, found " + quote_name(*model),
               key("model"), ""};
}

}  // namespace

Result<Vocabulary> read_gguf_vocabulary(const Metadata& metadata, const TokenizerOptions& options) {
  Vocabulary vocabulary;
  HEADRACE_ASSIGN(vocabulary.algorithm, read_algorithm(metadata));
  if (vocabulary.algorithm == Algorithm::byte_level_bpe) {
    HEADRACE_ASSIGN(const auto pre, metadata.get_string(key("pre")));
    auto found = find_pre_tokenizer(options.pre.empty() ? pre.value_or("default") : options.pre);
    if (!found.ok()) {
      return std::move(found).error().at(options.pre.empty() ? key("pre") : "--pre-tokenizer");
    }
    vocabulary.pre = *found;
    vocabulary.ignore_merges = vocabulary.pre.ignore_merges;
    if (vocabulary.pre.nfc) vocabulary.normalizer = Normalizer::nfc;
  }
  HEADRACE_TRY(read_pieces(metadata, vocabulary));
  HEADRACE_TRY(read_kinds(metadata, vocabulary));
  HEADRACE_TRY(index_pieces(vocabulary, key("tokens")));
  const bool is_unigram = vocabulary.algorithm == Algorithm::pipeline;
  if (is_unigram) HEADRACE_TRY(read_scores(metadata, vocabulary));
  if (vocabulary.algorithm == Algorithm::sentencepiece_bpe) {
    HEADRACE_TRY(read_scores(metadata, vocabulary));
    HEADRACE_ASSIGN(const auto prefix, metadata.get_bool(key("add_space_prefix")));
    vocabulary.space_prefix = prefix.value_or(true);
  }
  if (vocabulary.algorithm == Algorithm::byte_level_bpe) {
    HEADRACE_TRY(read_merges(metadata, vocabulary));
  }
  HEADRACE_TRY(read_special(metadata, vocabulary));
  if (!is_unigram) spell_bytes(vocabulary);
  return vocabulary;
}

}  // namespace headrace::text
