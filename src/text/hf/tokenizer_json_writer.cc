// See tokenizer_json_writer.h. The fields: Hugging Face tokenizers, the JSON form of a Tokenizer.
#include "text/hf/tokenizer_json_writer.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "text/hf/hf_pretokenizer.h"
#include "text/hf/sentencepiece_form.h"
#include "text/hf/tokenizer_json.h"
#include "text/tokenizer.h"
#include "text/tokenizer_texts.h"
#include "text/vocabulary.h"

namespace headrace {
namespace {

using nlohmann::ordered_json;
using text::Algorithm;
using text::Vocabulary;

/// A token as tokenizer.json spells it: those that users defined as the text has them.
std::string piece_of(const Vocabulary& vocabulary, TokenId id) {
  const std::string_view piece = vocabulary.pieces[static_cast<size_t>(id)];
  const bool is_text = vocabulary.algorithm == Algorithm::sentencepiece_bpe &&
                       vocabulary.kinds[static_cast<size_t>(id)] == TokenKind::user_defined;
  return is_text ? text::unmark_spaces(piece) : std::string(piece);
}

bool is_written(const Vocabulary& vocabulary, size_t id) {
  return !vocabulary.pieces[id].empty() && !text::is_padding_row(vocabulary.pieces[id], id);
}

/// Tokens that are matched in the text as a whole.
ordered_json added_tokens(const Vocabulary& vocabulary) {
  ordered_json out = ordered_json::array();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    const bool is_special = kind == TokenKind::control || kind == TokenKind::unknown;
    if ((!is_special && kind != TokenKind::user_defined) || !is_written(vocabulary, id)) continue;
    out.push_back({{"id", id},
                   {"content", piece_of(vocabulary, static_cast<TokenId>(id))},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", is_special}});
  }
  return out;
}

ordered_json vocabulary_map(const Vocabulary& vocabulary) {
  // Not an ordered_json, which looks for each new key among all others.
  nlohmann::json out = nlohmann::json::object();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (is_written(vocabulary, id)) out.emplace(piece_of(vocabulary, static_cast<TokenId>(id)), id);
  }
  return out;
}

/// Whether merges can say what the scores do: SentencePiece joins characters that are no tokens and
/// tokens that users defined, too.
bool can_be_merges(const Vocabulary& vocabulary) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    const std::string_view piece = vocabulary.pieces[id];
    if (kind == TokenKind::user_defined && piece.find(text::kSpaceMark) != piece.npos) return false;
    if (kind == TokenKind::normal && !text::has_character_tokens(vocabulary, piece)) return false;
  }
  return true;
}

ordered_json merge_list(const Vocabulary& vocabulary, const std::vector<text::MergeRule>& merges) {
  ordered_json out = ordered_json::array();
  for (const text::MergeRule& rule : merges) {
    out.push_back({piece_of(vocabulary, rule.left), piece_of(vocabulary, rule.right)});
  }
  return out;
}

/// Puts BOS before a text and EOS after it, where the model does.
ordered_json post_processor(const Vocabulary& vocabulary) {
  const SpecialTokens& special = vocabulary.special;
  ordered_json single = ordered_json::array();
  ordered_json pair = ordered_json::array();
  ordered_json tokens = ordered_json::object();
  const auto sequence = [](const char* id, int type) {
    return ordered_json{{"Sequence", {{"id", id}, {"type_id", type}}}};
  };
  const auto token = [&](TokenId id, int type) {
    const std::string piece = piece_of(vocabulary, id);
    tokens[piece] = {{"id", piece}, {"ids", {id}}, {"tokens", {piece}}};
    return ordered_json{{"SpecialToken", {{"id", piece}, {"type_id", type}}}};
  };
  for (const auto& [name, type] : {std::pair("A", 0), {"B", 1}}) {
    for (ordered_json* list : {&single, &pair}) {
      if (type == 1 && list == &single) continue;
      if (special.add_bos) list->push_back(token(special.bos, type));
      list->push_back(sequence(name, type));
      if (special.add_eos) list->push_back(token(special.eos, type));
    }
  }
  if (tokens.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", tokens}};
}

ordered_json bpe_model(const Vocabulary& vocabulary, bool is_sentencepiece, bool& is_same) {
  ordered_json model = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", is_sentencepiece && vocabulary.fuse_unknown},
                        {"byte_fallback", is_sentencepiece},
                        {"ignore_merges", vocabulary.ignore_merges}};
  if (is_sentencepiece && vocabulary.special.unk >= 0) {
    model["unk_token"] = piece_of(vocabulary, vocabulary.special.unk);
  }
  model["vocab"] = vocabulary_map(vocabulary);
  if (!is_sentencepiece) {
    model["merges"] = merge_list(vocabulary, vocabulary.merges);
    return model;
  }
  is_same = is_same && can_be_merges(vocabulary);
  model["merges"] = merge_list(vocabulary, text::merges_of_scores(vocabulary));
  return model;
}

void put_byte_level(const Vocabulary& vocabulary, ordered_json& out, bool& is_same) {
  out["normalizer"] = nullptr;
  if (vocabulary.normalizer == text::Normalizer::nfc) out["normalizer"] = {{"type", "NFC"}};
  const auto steps = text::pre_tokenizer_json(vocabulary.pre.rules);
  is_same = steps.has_value();
  out["pre_tokenizer"] = steps.value_or(text::pre_tokenizer_json(text::PreTokenizer::gpt2).value());
  out["post_processor"] = post_processor(vocabulary);
  out["decoder"] = {{"type", "ByteLevel"},
                    {"add_prefix_space", false},
                    {"trim_offsets", true},
                    {"use_regex", true}};
}

void put_sentencepiece(const Vocabulary& vocabulary, ordered_json& out) {
  const std::string mark(text::kSpaceMark);
  ordered_json steps = ordered_json::array();
  if (vocabulary.space_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", mark}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", mark}});
  out["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  out["pre_tokenizer"] = nullptr;
  out["post_processor"] = post_processor(vocabulary);
  ordered_json decoders = {{{"type", "Replace"}, {"pattern", {{"String", mark}}}, {"content", " "}},
                           {{"type", "ByteFallback"}},
                           {{"type", "Fuse"}}};
  if (vocabulary.space_prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  out["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
}

std::string config_text(const Vocabulary& vocabulary, const Metadata& metadata) {
  const SpecialTokens& special = vocabulary.special;
  ordered_json out = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"add_bos_token", special.add_bos},
                      {"add_eos_token", special.add_eos},
                      {"clean_up_tokenization_spaces", false}};
  const auto put = [&](const char* name, TokenId id) {
    if (id >= 0) out[name] = piece_of(vocabulary, id);
  };
  put("bos_token", special.bos);
  put("eos_token", special.eos);
  put("unk_token", special.unk);
  put("pad_token", special.pad);
  const auto source = metadata.get_string("tokenizer.chat_template");
  if (source.ok() && *source) out["chat_template"] = std::string(**source);
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Most bytes of a text of pieces, several times what the largest published vocabulary makes.
constexpr size_t kMostJoined = size_t{16} << 20;

/// Texts, all tokens that are matched as a whole with text on both sides, and SentencePiece's
/// pieces side by side: of neighbours with equal scores it joins the leftmost, which merges only
/// nearly say.
std::vector<std::string> texts_to_compare(const Vocabulary& vocabulary) {
  std::vector<std::string> texts = tokenizer_texts();
  std::string matched, joined;
  const auto add = [](std::string& text, const std::string& part) {
    if (text.size() + part.size() <= kMostJoined) text += part;
  };
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (vocabulary.is_hidden(token) || vocabulary.kinds[id] == TokenKind::user_defined) {
      add(matched, " a " + piece_of(vocabulary, token) + "b");
    } else if (vocabulary.algorithm == Algorithm::sentencepiece_bpe &&
               vocabulary.kinds[id] == TokenKind::normal) {
      const std::string piece = text::unmark_spaces(vocabulary.pieces[id]);
      add(joined, piece + piece);
    }
  }
  texts.push_back(std::move(matched));
  texts.push_back(std::move(joined));
  return texts;
}

/// Whether the files, read again, give the ids of `metadata`. Errors: they cannot be read.
Result<bool> read_alike(const Metadata& metadata, const Vocabulary& vocabulary,
                        const WrittenTokenizerFiles& files) {
  HEADRACE_ASSIGN(const auto before, make_tokenizer(metadata, {}));
  HEADRACE_ASSIGN(
      const auto after,
      text::read_tokenizer_json({.tokenizer = files.tokenizer, .tokenizer_config = files.config},
                                {}, "the tokenizer.json that was made"));
  constexpr EncodeOptions kParsed = {.add_special = true, .parse_special = true};
  for (const std::string& text : texts_to_compare(vocabulary)) {
    const auto wanted = before->encode(text, kParsed);
    const auto found = after->encode(text, kParsed);
    if (!wanted.ok() || !found.ok() || *wanted != *found) return false;
  }
  return true;
}

}  // namespace

Result<WrittenTokenizerFiles> write_hf_tokenizer(const Metadata& metadata) {
  HEADRACE_ASSIGN(const Vocabulary vocabulary, text::read_gguf_vocabulary(metadata, {}));
  const bool is_sentencepiece = vocabulary.algorithm == Algorithm::sentencepiece_bpe;
  if (!is_sentencepiece && vocabulary.algorithm != Algorithm::byte_level_bpe) {
    return Error{ErrorCode::unsupported, "only BPE vocabularies are written as tokenizer.json", "",
                 "take tokenizer.json of the model's own directory"};
  }
  WrittenTokenizerFiles files;
  ordered_json out = {{"version", "1.0"},
                      {"truncation", nullptr},
                      {"padding", nullptr},
                      {"added_tokens", added_tokens(vocabulary)}};
  if (is_sentencepiece) {
    put_sentencepiece(vocabulary, out);
  } else {
    put_byte_level(vocabulary, out, files.is_same);
  }
  out["model"] = bpe_model(vocabulary, is_sentencepiece, files.is_same);
  files.tokenizer = out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  files.config = config_text(vocabulary, metadata);
  HEADRACE_ASSIGN(const bool is_alike, read_alike(metadata, vocabulary, files));
  files.is_same = files.is_same && is_alike;
  return files;
}

}  // namespace headrace
