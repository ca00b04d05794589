// See special_tokens.h. The files: transformers, tokenization_utils_base.py; post-processors:
// Hugging Face tokenizers, src/processors.
#include "text/hf/special_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/read_number.h"
#include "checkpoint/quote_name.h"
#include "text/hf/json_fields.h"

namespace headrace::text {
namespace {

using nlohmann::json;

constexpr size_t kMostTemplateItems = 64;
constexpr int kMostPostDepth = 8;

TemplateItem text_item(int text, uint8_t type) {
  return {text, {}, type};
}
TemplateItem ids_item(std::vector<TokenId> ids, uint8_t type) {
  return {-1, std::move(ids), type};
}

Error bad_post(std::string message, ErrorCode code = ErrorCode::corrupt_data) {
  return bad_field("post_processor", std::move(message), code);
}

// BERT and RoBERTa name a token as [text, id].
Result<TokenId> pair_token(const json& post, const char* name, const Vocabulary& vocabulary) {
  const json& value = member(post, name);
  const bool is_pair = value.is_array() && value.size() == 2 && value[1].is_number_unsigned();
  if (!is_pair || value[1].get<uint64_t>() >= vocabulary.size()) {
    return bad_post(std::string("expected `") + name + "` to be a token and its id, found " +
                    shown(value));
  }
  return value[1].get<TokenId>();
}

Result<uint8_t> type_of(const json& item) {
  const json& type = member(item, "type_id");
  if (type.is_null()) return uint8_t{0};
  if (!type.is_number_unsigned() || type.get<uint64_t>() > 255) {
    return bad_post("expected a type_id of at most 255, found " + shown(type));
  }
  return static_cast<uint8_t>(type.get<uint64_t>());
}

Result<TokenTemplate> read_template(const json& items, const json& tokens,
                                    const Vocabulary& vocabulary, bool is_pair) {
  if (items.is_null()) {
    return is_pair ? TokenTemplate{text_item(0, 0), text_item(1, 1)}
                   : TokenTemplate{text_item(0, 0)};
  }
  if (!items.is_array() || items.size() > kMostTemplateItems) {
    return bad_post("expected a template of at most 64 items, found " + shown(items));
  }
  TokenTemplate made;
  for (const json& item : items) {
    if (const json& sequence = member(item, "Sequence"); sequence.is_object()) {
      HEADRACE_ASSIGN(const uint8_t type, type_of(sequence));
      const bool second = member(sequence, "id") == "B";
      if (second && !is_pair) return bad_post("expected no second text in `single`");
      made.push_back(text_item(second ? 1 : 0, type));
      continue;
    }
    const json& token = member(item, "SpecialToken");
    const json& name = member(token, "id");
    if (!name.is_string()) return bad_post("expected items Sequence or SpecialToken");
    HEADRACE_ASSIGN(const uint8_t type, type_of(token));
    const auto& text = name.get_ref<const std::string&>();
    const json& ids = member(member(tokens, text.c_str()), "ids");
    std::vector<TokenId> list;
    if (ids.is_array() && ids.size() <= kMostTemplateItems) {
      for (const json& id : ids) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary.size()) {
          return bad_post("token " + quote_name(text) + ": expected an id below " +
                          std::to_string(vocabulary.size()) + ", found " + shown(id));
        }
        list.push_back(id.get<TokenId>());
      }
    } else if (const TokenId id = named_token(vocabulary, name); id >= 0) {
      list.push_back(id);
    } else {
      return bad_post("the template's token " + quote_name(text) + " is not in the vocabulary");
    }
    made.push_back(ids_item(std::move(list), type));
  }
  return made;
}

// `outer` around what is there already: its texts are those of `inner`.
void wrap(TokenTemplate& inner, const TokenTemplate& outer) {
  TokenTemplate made;
  for (const TemplateItem& item : outer) {
    if (item.text == 0) {
      made.insert(made.end(), inner.begin(), inner.end());
    } else {
      made.push_back(item);
    }
  }
  inner = std::move(made);
}

Result<void> read_post(const json& post, const Vocabulary& vocabulary, int depth,
                       TokenTemplate& single, TokenTemplate& pair) {
  const json& type = member(post, "type");
  if (post.is_null() || type == "ByteLevel") return {};
  if (type == "Sequence") {
    const json& parts = member(post, "processors");
    if (!parts.is_array() || parts.size() > kMostTemplateItems || depth >= kMostPostDepth) {
      return bad_post("expected a sequence of processors that nests at most 8 deep");
    }
    for (const json& part : parts) {
      HEADRACE_TRY(read_post(part, vocabulary, depth + 1, single, pair));
    }
    return {};
  }
  TokenTemplate own_single, own_pair;
  if (type == "TemplateProcessing") {
    const json& tokens = member(post, "special_tokens");
    HEADRACE_ASSIGN(own_single, read_template(member(post, "single"), tokens, vocabulary, false));
    HEADRACE_ASSIGN(own_pair, read_template(member(post, "pair"), tokens, vocabulary, true));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    HEADRACE_ASSIGN(const TokenId cls, pair_token(post, "cls", vocabulary));
    HEADRACE_ASSIGN(const TokenId sep, pair_token(post, "sep", vocabulary));
    own_single = {ids_item({cls}, 0), text_item(0, 0), ids_item({sep}, 0)};
    if (type == "BertProcessing") {
      own_pair = {ids_item({cls}, 0), text_item(0, 0), ids_item({sep}, 0), text_item(1, 1),
                  ids_item({sep}, 1)};
    } else {
      own_pair = {ids_item({cls}, 0), text_item(0, 0), ids_item({sep, sep}, 0), text_item(1, 0),
                  ids_item({sep}, 0)};
    }
  } else {
    return bad_post(
        "expected TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or "
        "Sequence, found " +
            shown(type),
        ErrorCode::unsupported);
  }
  const auto texts = std::count_if(own_single.begin(), own_single.end(),
                                   [](const TemplateItem& item) { return item.text == 0; });
  if (texts != 1) {
    return bad_post(
        "expected a template with the text once, found it " + std::to_string(texts) + " times",
        ErrorCode::unsupported);
  }
  if (single.size() + own_single.size() > 2 * kMostTemplateItems) {
    return bad_post("expected templates of at most 128 items in all");
  }
  wrap(single, own_single);
  pair = std::move(own_pair);
  return {};
}

// Tokens of the template before (or behind) the text.
std::vector<TokenId> side_of(const TokenTemplate& items, bool behind) {
  std::vector<TokenId> ids;
  bool seen = false;
  for (const TemplateItem& item : items) {
    if (item.text == 0) {
      seen = true;
    } else if (seen == behind) {
      ids.insert(ids.end(), item.ids.begin(), item.ids.end());
    }
  }
  return ids;
}

// Puts `id` at the end `at_end` of the template, or takes it away.
void set_side(TokenTemplate& items, bool at_end, TokenId id, bool wanted) {
  if (wanted) {
    items.insert(at_end ? items.end() : items.begin(), ids_item({id}, 0));
    return;
  }
  std::vector<TokenId>& ids = at_end ? items.back().ids : items.front().ids;
  if (ids.empty() || (at_end ? ids.back() : ids.front()) != id) return;
  ids.erase(at_end ? ids.end() - 1 : ids.begin());
}

Result<json> parse_or_empty(std::string_view text, std::string_view file) {
  if (text.empty()) return json::object();
  return parse_object(text, file);
}

Result<std::vector<TokenId>> generation_ends(const HfFiles& files, const Vocabulary& vocabulary) {
  std::vector<TokenId> ends;
  if (files.generation_config.empty()) return ends;
  HEADRACE_ASSIGN(const json generation,
                  parse_object(files.generation_config, "generation_config.json"));
  for (const int64_t id : listed_ids(member(generation, "eos_token_id"))) {
    if (vocabulary.is_id(id)) ends.push_back(static_cast<TokenId>(id));
  }
  return ends;
}

}  // namespace

TokenId named_token(const Vocabulary& vocabulary, const json& value) {
  const json& text = value.is_object() ? member(value, "content") : value;
  return text.is_string()
             ? vocabulary.index.find(vocabulary.pieces, text.get_ref<const std::string&>())
             : -1;
}

Result<void> read_post_processor(const json& post, const Vocabulary& vocabulary,
                                 TokenTemplate& single, TokenTemplate& pair) {
  single = {text_item(0, 0)};
  pair = {text_item(0, 0), text_item(1, 1)};
  return read_post(post, vocabulary, 0, single, pair);
}

Result<void> read_special_tokens(const HfFiles& files, Vocabulary& vocabulary,
                                 TokenTemplate& single, TokenTemplate& pair) {
  HEADRACE_ASSIGN(const json config,
                  parse_or_empty(files.tokenizer_config, "tokenizer_config.json"));
  HEADRACE_ASSIGN(const json map,
                  parse_or_empty(files.special_tokens_map, "special_tokens_map.json"));
  const auto name = [&](TokenId& id, const char* key) {
    const json& value = member(config, key);
    const TokenId found = named_token(vocabulary, value.is_null() ? member(map, key) : value);
    if (found >= 0) id = found;
  };
  SpecialTokens& special = vocabulary.special;
  name(special.bos, "bos_token");
  name(special.eos, "eos_token");
  name(special.unk, "unk_token");
  name(special.pad, "pad_token");
  name(special.sep, "sep_token");
  name(special.cls, "cls_token");
  name(special.mask, "mask_token");
  std::vector<TokenId> before = side_of(single, false), behind = side_of(single, true);
  if (!before.empty()) special.bos = before.front();
  if (special.bos < 0) special.bos = special.cls;
  if (special.eos < 0 && !behind.empty()) special.eos = behind.back();

  const json& add_bos = member(config, "add_bos_token");
  const json& add_eos = member(config, "add_eos_token");
  const bool has_bos = !before.empty();
  const bool has_eos = !behind.empty() && behind.back() == special.eos;
  special.add_bos = (add_bos.is_boolean() ? add_bos.get<bool>() : has_bos) && special.bos >= 0;
  special.add_eos = (add_eos.is_boolean() ? add_eos.get<bool>() : has_eos) && special.eos >= 0;
  for (TokenTemplate* const items : {&single, &pair}) {
    if (special.add_bos != has_bos) set_side(*items, false, special.bos, special.add_bos);
    if (special.add_eos != has_eos) set_side(*items, true, special.eos, special.add_eos);
  }
  HEADRACE_ASSIGN(const std::vector<TokenId> ends, generation_ends(files, vocabulary));
  find_end_tokens(vocabulary, ends);
  return {};
}

Result<void> append_added_tokens_decoder(const HfFiles& files, json& added) {
  HEADRACE_ASSIGN(const json config,
                  parse_or_empty(files.tokenizer_config, "tokenizer_config.json"));
  const json& decoder = member(config, "added_tokens_decoder");
  if (!decoder.is_object()) return {};
  if (added.is_null()) added = json::array();
  if (!added.is_array()) return {};
  std::set<std::string> known;
  for (const json& token : added) {
    if (member(token, "content").is_string()) known.insert(member(token, "content"));
  }
  for (const auto& [key, token] : decoder.items()) {
    const auto id = number_within<uint64_t>(key, 0, uint64_t{1} << 31);
    const json& content = member(token, "content");
    if (!id || !content.is_string()) {
      return Error{ErrorCode::corrupt_data,
                   "expected ids and tokens with a text `content`, found " + quote_name(key),
                   "tokenizer_config.json: added_tokens_decoder", ""};
    }
    if (!known.insert(content).second) continue;
    json copy = token;
    copy["id"] = *id;
    added.push_back(std::move(copy));
  }
  return {};
}

}  // namespace headrace::text
