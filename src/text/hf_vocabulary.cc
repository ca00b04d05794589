// See hf_vocabulary.h. The fields: Hugging Face tokenizers, the JSON form of a Tokenizer.
#include "text/hf_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "checkpoint/quote_name.h"
#include "text/hf_pretokenizer.h"

namespace headrace::text {
namespace {

using nlohmann::json;

constexpr std::string_view kFile = "tokenizer.json";
constexpr int kMaxDepth = 64;

Error bad_field(std::string_view key, std::string message,
                ErrorCode code = ErrorCode::corrupt_data) {
  return Error{code, std::move(message), std::string(kFile) + ": " + std::string(key), ""};
}

Result<json> parse(std::string_view text, std::string_view file) {
  const auto fail = [&](std::string message) {
    return Error{ErrorCode::corrupt_data, std::move(message), std::string(file), ""};
  };
  if (text.size() > kMaxJsonBytes) return fail("expected a file of at most 128 MiB");
  if (json_depth(text) > kMaxDepth) return fail("nested more than 64 deep");
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return fail("expected a JSON object");
  return parsed;
}

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

bool is_true(const json& object, const char* name) {
  const json& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

bool is_empty_text(const json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
}

// A row of the vocabulary before the rows are in order.
struct Row {
  std::string_view piece;
  TokenKind kind = TokenKind::unused;  // a hole: no such token
};

Result<void> set_row(std::vector<Row>& rows, const json& id, std::string_view piece, TokenKind kind,
                     std::string_view key) {
  const int64_t number =
      id.is_number_integer() &&
              (!id.is_number_unsigned() || id.get<uint64_t>() < uint64_t{kMaxVocabularySize})
          ? id.get<int64_t>()
          : -1;
  if (number < 0 || static_cast<size_t>(number) >= rows.size()) {
    return bad_field(key, "token " + quote_name(piece) + ": expected an id below " +
                              std::to_string(rows.size()) + ", found " +
                              id.dump(-1, ' ', true).substr(0, 40));
  }
  Row& row = rows[static_cast<size_t>(number)];
  if (row.kind != TokenKind::unused && row.piece != piece) {
    return bad_field(key, "tokens " + quote_name(row.piece) + " and " + quote_name(piece) +
                              " both have id " + std::to_string(number));
  }
  row = {piece, kind};
  return {};
}

Result<void> read_rows(const json& root, Vocabulary& vocabulary) {
  const json& vocab = member(member(root, "model"), "vocab");
  if (!vocab.is_object() || vocab.empty())
    return bad_field("model.vocab", "expected an object of tokens");
  const json& added = member(root, "added_tokens");
  if (!added.is_null() && !added.is_array()) return bad_field("added_tokens", "expected an array");
  // Ids may have holes, but a file cannot ask for more rows than a few times its tokens.
  std::vector<Row> rows(
      std::min<size_t>(kMaxVocabularySize, 2 * (vocab.size() + added.size()) + 1024));
  for (const auto& [piece, id] : vocab.items()) {
    HEADRACE_TRY(set_row(rows, id, piece, TokenKind::normal, "model.vocab"));
  }
  // Where only some tokens are matched in normalised text, those come late.
  const auto is_normalized = [](const json& token) {
    return member(token, "normalized").is_boolean() ? is_true(token, "normalized")
                                                    : !is_true(token, "special");
  };
  const bool some_are_late = !std::all_of(added.begin(), added.end(), is_normalized);
  for (const json& token : added) {
    const json& content = member(token, "content");
    if (!content.is_string())
      return bad_field("added_tokens", "expected a token with a text `content`");
    const TokenKind kind = is_true(token, "special") ? TokenKind::control : TokenKind::user_defined;
    const auto& text = content.get_ref<const std::string&>();
    HEADRACE_TRY(set_row(rows, member(token, "id"), text, kind, "added_tokens"));
    const AddedRule rule{member(token, "id").get<TokenId>(), is_true(token, "lstrip"),
                         is_true(token, "rstrip"), is_true(token, "single_word"),
                         some_are_late && is_normalized(token)};
    if (rule.strip_left || rule.strip_right || rule.single_word || rule.late) {
      vocabulary.added.push_back(rule);
    }
  }
  while (rows.back().kind == TokenKind::unused) rows.pop_back();
  for (const Row& row : rows) {
    vocabulary.pieces.add(row.piece);
    vocabulary.kinds.push_back(row.kind);
  }
  return index_pieces(vocabulary, std::string(kFile) + ": model.vocab");
}

Result<void> read_merges(const json& model, Vocabulary& vocabulary) {
  const json& merges = member(model, "merges");
  if (!merges.is_array()) return bad_field("model.merges", "expected an array");
  vocabulary.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const json& merge = merges[i];
    std::string left, right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ', 1);
      if (space != text.npos) {
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    }
    const auto find = [&](const std::string& piece) {
      return piece.empty() ? -1 : vocabulary.index.find(vocabulary.pieces, piece);
    };
    const MergeRule rule{find(left), find(right), find(left + right)};
    if (rule.left < 0 || rule.right < 0 || rule.joined < 0) {
      return bad_field("model.merges", "merge " + std::to_string(i) + " " +
                                           quote_name(left + " " + right) +
                                           ": a part of it, or what it gives, is not a token");
    }
    vocabulary.merges.push_back(rule);
  }
  return {};
}

Result<void> check_model(const json& model) {
  const json& type = member(model, "type");
  if (!type.is_null() && type != "BPE") {
    return bad_field("model.type",
                     "expected 'BPE', found " + type.dump(-1, ' ', true).substr(0, 40),
                     ErrorCode::unsupported);
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_empty_text(member(model, name))) {
      return bad_field(std::string("model.") + name, "expected none", ErrorCode::unsupported);
    }
  }
  if (is_true(model, "byte_fallback")) {
    return bad_field("model.byte_fallback",
                     "expected a byte-level vocabulary without byte fall-back",
                     ErrorCode::unsupported);
  }
  return {};
}

Result<Normalizer> read_normalizer(const json& normalizer, int depth = 0) {
  if (normalizer.is_null()) return Normalizer::none;
  const json& type = member(normalizer, "type");
  if (type == "NFC") return Normalizer::nfc;
  const json& parts = member(normalizer, "normalizers");
  if (type == "Sequence" && parts.is_array() && depth == 0) {
    if (parts.empty()) return Normalizer::none;
    if (parts.size() == 1) return read_normalizer(parts[0], depth + 1);
  }
  return bad_field("normalizer",
                   "expected none or NFC, found " + type.dump(-1, ' ', true).substr(0, 40),
                   ErrorCode::unsupported);
}

// The id of a token that tokenizer_config.json names as a text or as an object with `content`.
TokenId named_token(const Vocabulary& vocabulary, const json& value) {
  const json& text = value.is_object() ? member(value, "content") : value;
  return text.is_string()
             ? vocabulary.index.find(vocabulary.pieces, text.get_ref<const std::string&>())
             : -1;
}

// The special token at the beginning or end of a text, by the template of the post-processor.
TokenId template_token(const Vocabulary& vocabulary, const json& post, bool at_end) {
  const json* single = &member(post, "single");
  if (member(post, "type") == "Sequence" && member(post, "processors").is_array()) {
    for (const json& part : member(post, "processors")) {
      if (member(part, "type") == "TemplateProcessing") single = &member(part, "single");
    }
  }
  if (!single->is_array() || single->size() < 2) return -1;
  const json& item = at_end ? single->back() : single->front();
  return named_token(vocabulary, member(member(item, "SpecialToken"), "id"));
}

Result<void> read_special(const HfFiles& files, const json& root, Vocabulary& vocabulary) {
  json config = json::object();
  if (!files.tokenizer_config.empty()) {
    HEADRACE_ASSIGN(config, parse(files.tokenizer_config, "tokenizer_config.json"));
  }
  SpecialTokens& special = vocabulary.special;
  const json& post = member(root, "post_processor");
  const TokenId first = template_token(vocabulary, post, false);
  const TokenId last = template_token(vocabulary, post, true);
  special.bos = named_token(vocabulary, member(config, "bos_token"));
  special.eos = named_token(vocabulary, member(config, "eos_token"));
  special.unk = named_token(vocabulary, member(config, "unk_token"));
  special.pad = named_token(vocabulary, member(config, "pad_token"));
  if (first >= 0) special.bos = first;
  if (special.eos < 0) special.eos = last;
  const auto flag = [&](const char* name, bool otherwise) {
    const json& value = member(config, name);
    return value.is_boolean() ? value.get<bool>() : otherwise;
  };
  special.add_bos = flag("add_bos_token", first >= 0) && special.bos >= 0;
  special.add_eos = flag("add_eos_token", last >= 0 && last == special.eos) && special.eos >= 0;

  std::vector<TokenId> ends;
  if (!files.generation_config.empty()) {
    HEADRACE_ASSIGN(const json generation,
                    parse(files.generation_config, "generation_config.json"));
    const json& eos = member(generation, "eos_token_id");
    const json list = eos.is_array() ? eos : json::array({eos});
    for (const json& id : list) {
      if (id.is_number_integer() && vocabulary.is_id(id.get<int64_t>())) {
        ends.push_back(id.get<TokenId>());
      }
    }
  }
  find_end_tokens(vocabulary, ends);
  return {};
}

}  // namespace

Result<Vocabulary> read_hf_vocabulary(const HfFiles& files, const TokenizerOptions& options) {
  HEADRACE_ASSIGN(const json root, parse(files.tokenizer, kFile));
  const json& model = member(root, "model");
  HEADRACE_TRY(check_model(model));
  Vocabulary vocabulary;
  vocabulary.algorithm = Algorithm::byte_level_bpe;
  HEADRACE_ASSIGN(vocabulary.normalizer, read_normalizer(member(root, "normalizer")));
  auto pre = options.pre.empty() ? recognise_pre_tokenizer(member(root, "pre_tokenizer"))
                                 : find_pre_tokenizer(options.pre);
  if (!pre.ok()) return std::move(pre).error().at(options.pre.empty() ? kFile : "--pre-tokenizer");
  vocabulary.pre = *pre;
  vocabulary.ignore_merges = is_true(model, "ignore_merges");
  HEADRACE_TRY(read_rows(root, vocabulary));
  HEADRACE_TRY(read_merges(model, vocabulary));
  HEADRACE_TRY(read_special(files, root, vocabulary));
  spell_bytes(vocabulary);
  return vocabulary;
}

}  // namespace headrace::text
