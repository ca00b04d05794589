// See read_model.h. The fields: Hugging Face tokenizers, the JSON form of models and added tokens.
#include "text/hf/read_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "checkpoint/quote_name.h"
#include "text/hf/json_fields.h"

namespace headrace::text {
namespace {

using nlohmann::json;

// A row of the vocabulary before the rows are in order.
struct Row {
  std::string_view piece;
  TokenKind kind = TokenKind::unused;  // a hole: no such token
  bool in_model = false;
  double score = 0;
};

/// Rows by id while the file is read. Pieces point into the file's JSON.
class Rows {
 public:
  // Ids may have holes, but a file cannot ask for more rows than a few times its tokens.
  explicit Rows(size_t num_tokens)
      : rows_(std::min<size_t>(kMaxVocabularySize, 2 * num_tokens + 1024)) {}

  Result<TokenId> set(const json& id, std::string_view piece, const Row& row,
                      std::string_view key) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= rows_.size()) {
      return bad_field(key, "token " + quote_name(piece) + ": expected an id below " +
                                std::to_string(rows_.size()) + ", found " + shown(id));
    }
    Row& place = rows_[id.get<size_t>()];
    if (place.kind != TokenKind::unused && place.piece != piece) {
      return bad_field(key, "tokens " + quote_name(place.piece) + " and " + quote_name(piece) +
                                " both have id " + shown(id));
    }
    const bool was_in_model = place.in_model;
    const double score = place.score;
    place = row;
    if (was_in_model) {
      place.in_model = true;
      place.score = score;
    }
    return id.get<TokenId>();
  }

  void finish(Vocabulary& vocabulary, ModelSpec& spec) {
    while (!rows_.empty() && rows_.back().kind == TokenKind::unused) rows_.pop_back();
    for (const Row& row : rows_) {
      vocabulary.pieces.add(row.piece);
      vocabulary.kinds.push_back(row.kind);
      spec.in_model.push_back(row.in_model);
      if (spec.kind == ModelKind::unigram || spec.kind == ModelKind::scored_bpe) {
        spec.scores.push_back(row.score);
      }
    }
    vocabulary.index = StringIndex(vocabulary.size());
    for (size_t id = 0; id < vocabulary.size(); ++id) {
      if (!vocabulary.pieces[id].empty()) {
        vocabulary.index.insert(vocabulary.pieces, static_cast<uint32_t>(id));
      }
    }
  }

 private:
  std::vector<Row> rows_;
};

Result<ModelKind> read_kind(const json& model) {
  const json& type = member(model, "type");
  if (type == "BPE") return ModelKind::bpe;
  if (type == "Unigram") return ModelKind::unigram;
  if (type == "WordPiece") return ModelKind::wordpiece;
  if (type == "WordLevel") return ModelKind::word_level;
  if (!type.is_null() || !model.is_object()) {
    return bad_field("model.type",
                     "expected BPE, Unigram, WordPiece or WordLevel, found " + shown(type),
                     ErrorCode::unsupported);
  }
  // Old files name no type: the fields tell.
  if (model.contains("merges")) return ModelKind::bpe;
  if (member(model, "vocab").is_array()) return ModelKind::unigram;
  return model.contains("max_input_chars_per_word") ? ModelKind::wordpiece : ModelKind::word_level;
}

using IdsByPiece = std::unordered_map<std::string_view, TokenId>;

Result<void> read_vocab(const json& vocab, Rows& rows, IdsByPiece& ids) {
  for (const auto& [piece, id] : vocab.items()) {
    HEADRACE_ASSIGN(ids[piece],
                    rows.set(id, piece, {piece, TokenKind::normal, true, 0}, "model.vocab"));
  }
  return {};
}

Result<void> read_scored_vocab(const json& vocab, Rows& rows, IdsByPiece& ids) {
  for (size_t i = 0; i < vocab.size(); ++i) {
    const json& entry = vocab[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number() ||
        !std::isfinite(entry[1].get<double>())) {
      return bad_field("model.vocab",
                       "token " + std::to_string(i) + ": expected a text and a finite score");
    }
    const auto& piece = entry[0].get_ref<const std::string&>();
    HEADRACE_ASSIGN(ids[piece], rows.set(json(static_cast<uint64_t>(i)), piece,
                                         {piece, TokenKind::normal, true, entry[1].get<double>()},
                                         "model.vocab"));
  }
  return {};
}

// `ids` are those of the model: an added token with the text of one of these is that one.
Result<void> read_added(const json& added, Rows& rows, const IdsByPiece& ids,
                        Vocabulary& vocabulary) {
  // Where only some tokens are matched in normalised text, those come late.
  const auto is_normalized = [](const json& token) {
    return flag_or(token, "normalized", !is_true(token, "special"));
  };
  for (const json& token : added) {
    const json& content = member(token, "content");
    if (!content.is_string()) {
      return bad_field("added_tokens", "expected a token with a text `content`");
    }
    const auto& text = content.get_ref<const std::string&>();
    if (text.empty()) continue;
    const TokenKind kind = is_true(token, "special") ? TokenKind::control : TokenKind::user_defined;
    const auto known = ids.find(text);
    const json id =
        known == ids.end() ? member(token, "id") : json(static_cast<uint64_t>(known->second));
    HEADRACE_ASSIGN(const TokenId set, rows.set(id, text, {text, kind, false, 0}, "added_tokens"));
    AddedRule rule;
    rule.id = set;
    rule.strip_left = is_true(token, "lstrip");
    rule.strip_right = is_true(token, "rstrip");
    rule.single_word = is_true(token, "single_word");
    rule.late = is_normalized(token);
    std::erase_if(vocabulary.added, [&](const AddedRule& other) { return other.id == rule.id; });
    if (rule.strip_left || rule.strip_right || rule.single_word || rule.late) {
      vocabulary.added.push_back(std::move(rule));
    }
  }
  return {};
}

Result<void> read_merges(const json& model, size_t prefix_size, Vocabulary& vocabulary) {
  const json& merges = member(model, "merges");
  if (!merges.is_array()) return bad_field("model.merges", "expected an array");
  vocabulary.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const json& merge = merges[i];
    std::string_view left, right;
    if (merge.is_string()) {
      const std::string_view text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ', 1);
      if (space != text.npos) {
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get_ref<const std::string&>();
      right = merge[1].get_ref<const std::string&>();
    }
    const auto find = [&](std::string_view piece) {
      return piece.empty() ? -1 : vocabulary.index.find(vocabulary.pieces, piece);
    };
    std::string joined(left);
    joined += right.substr(std::min(prefix_size, right.size()));
    const MergeRule rule{find(left), find(right), find(joined)};
    if (rule.left < 0 || rule.right < 0 || rule.joined < 0) {
      std::string pair(left);
      pair.append(1, ' ').append(right);
      const std::string_view missing = rule.left < 0 ? left : rule.right < 0 ? right : joined;
      return bad_field("model.merges", "merge " + std::to_string(i) + " " + quote_name(pair) +
                                           ": " + quote_name(missing) + " is not a token");
    }
    vocabulary.merges.push_back(rule);
  }
  return {};
}

Result<void> read_unknown(const json& model, const Vocabulary& vocabulary, ModelSpec& spec) {
  if (spec.kind == ModelKind::unigram) {
    const json& id = member(model, "unk_id");
    if (id.is_null()) return {};
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= member(model, "vocab").size()) {
      return bad_field("model.unk_id", "expected an id of the vocabulary, found " + shown(id));
    }
    spec.unknown = id.get<TokenId>();
    return {};
  }
  HEADRACE_ASSIGN(const std::string unknown, text_or(model, "unk_token", "", "model"));
  if (unknown.empty()) return {};
  // The library looks it up only when it needs it: one that is missing counts as none.
  const TokenId id = vocabulary.index.find(vocabulary.pieces, unknown);
  if (id >= 0 && spec.in_model[static_cast<size_t>(id)]) spec.unknown = id;
  return {};
}

}  // namespace

Result<ModelSpec> read_model(const json& model, const json& added, Vocabulary& vocabulary) {
  ModelSpec spec;
  HEADRACE_ASSIGN(spec.kind, read_kind(model));
  const json& vocab = member(model, "vocab");
  const bool scored = spec.kind == ModelKind::unigram;
  if ((scored ? !vocab.is_array() : !vocab.is_object()) || vocab.empty()) {
    return bad_field("model.vocab", scored ? "expected an array of tokens and scores"
                                           : "expected an object of tokens");
  }
  if (vocab.size() > kMaxVocabularySize) {
    return bad_field("model.vocab", "expected at most " + std::to_string(kMaxVocabularySize) +
                                        " tokens, found " + std::to_string(vocab.size()));
  }
  if (!added.is_null() && !added.is_array()) return bad_field("added_tokens", "expected an array");
  Rows rows(vocab.size() + added.size());
  IdsByPiece ids;
  HEADRACE_TRY(scored ? read_scored_vocab(vocab, rows, ids) : read_vocab(vocab, rows, ids));
  HEADRACE_TRY(read_added(added, rows, ids, vocabulary));
  rows.finish(vocabulary, spec);

  spec.byte_fallback = is_true(model, "byte_fallback");
  spec.fuse_unknown = is_true(model, "fuse_unk");
  spec.ignore_merges = is_true(model, "ignore_merges");
  const bool in_pieces = spec.kind == ModelKind::wordpiece;
  HEADRACE_ASSIGN(spec.prefix,
                  text_or(model, "continuing_subword_prefix", in_pieces ? "##" : "", "model"));
  HEADRACE_ASSIGN(spec.suffix, text_or(model, "end_of_word_suffix", "", "model"));
  HEADRACE_ASSIGN(spec.max_word_chars,
                  count_or(model, "max_input_chars_per_word", 100, 1 << 20, "model"));
  HEADRACE_TRY(read_unknown(model, vocabulary, spec));
  if (spec.kind == ModelKind::bpe) {
    HEADRACE_TRY(read_merges(model, spec.prefix.size(), vocabulary));
  }
  return spec;
}

Result<void> add_tokens(const json& added, Vocabulary& vocabulary, ModelSpec& spec) {
  Rows rows(vocabulary.size() + added.size());
  IdsByPiece ids;
  const StringPool pieces = std::move(vocabulary.pieces);
  for (size_t id = 0; id < pieces.size(); ++id) {
    const double score = spec.scores.empty() ? 0 : spec.scores[id];
    const Row row{pieces[id], vocabulary.kinds[id], spec.in_model[id], score};
    HEADRACE_TRY(rows.set(json(static_cast<uint64_t>(id)), pieces[id], row, "tokenizer.model"));
    ids[pieces[id]] = static_cast<TokenId>(id);
  }
  vocabulary.pieces = StringPool();
  vocabulary.kinds.clear();
  spec.in_model.clear();
  spec.scores.clear();
  HEADRACE_TRY(read_added(added, rows, ids, vocabulary));
  rows.finish(vocabulary, spec);
  return {};
}

}  // namespace headrace::text
