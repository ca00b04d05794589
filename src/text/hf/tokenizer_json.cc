// See tokenizer_json.h.
#include "text/hf/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/base_tokenizer.h"
#include "text/hf/cut_at_marks.h"
#include "text/hf/hf_pretokenizer.h"
#include "text/hf/json_fields.h"
#include "text/hf/pipeline.h"
#include "text/hf/read_model.h"
#include "text/hf/read_steps.h"
#include "text/hf/special_tokens.h"

namespace headrace::text {
namespace {

using nlohmann::json;

bool has_all_bytes(const Vocabulary& vocabulary) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string& spelling = ByteAlphabet::get().spelling(static_cast<uint8_t>(byte));
    if (vocabulary.index.find(vocabulary.pieces, spelling) < 0) return false;
  }
  return true;
}

// The only step of a kind, where sequences of one count as what is in them.
const json& only_step(const json& step, const char* parts) {
  const json* now = &step;
  for (int depth = 0; depth < 8; ++depth) {
    const json& list = member(*now, parts);
    if (member(*now, "type") != "Sequence" || !list.is_array() || list.size() != 1) break;
    now = &list[0];
  }
  return *now;
}

// No steps but those that BpeTokenizer has: then it is read by that, which is faster.
bool is_plain_bpe(const json& root, const Vocabulary& vocabulary, const ModelSpec& spec) {
  const json& normalizer = only_step(member(root, "normalizer"), "normalizers");
  const json& decoder = only_step(member(root, "decoder"), "decoders");
  const json& parts = member(normalizer, "normalizers");
  const bool no_normalizer = normalizer.is_null() || (parts.is_array() && parts.empty()) ||
                             member(normalizer, "type") == "NFC";
  if (spec.kind != ModelKind::bpe || spec.byte_fallback || !spec.prefix.empty() ||
      !spec.suffix.empty() || !no_normalizer) {
    return false;
  }
  if (spec.unknown >= 0 && !has_all_bytes(vocabulary)) return false;
  return decoder.is_null() || member(decoder, "type") == "ByteLevel";
}

// One token at most on each side, which are BOS and EOS.
bool is_plain_template(const TokenTemplate& single, const SpecialTokens& special) {
  std::vector<TokenId> before, behind;
  std::vector<TokenId>* side = &before;
  for (const TemplateItem& item : single) {
    if (item.text == 0) {
      side = &behind;
    } else {
      side->insert(side->end(), item.ids.begin(), item.ids.end());
    }
  }
  const auto is_one = [](const std::vector<TokenId>& ids, bool added, TokenId id) {
    return added ? ids == std::vector<TokenId>{id} : ids.empty();
  };
  return is_one(before, special.add_bos, special.bos) &&
         is_one(behind, special.add_eos, special.eos);
}

Result<std::shared_ptr<const Tokenizer>> build_plain(const json& root, Vocabulary vocabulary,
                                                     const ModelSpec& spec,
                                                     const PreTokenizerName& pre,
                                                     std::string_view place) {
  const json& normalizer = only_step(member(root, "normalizer"), "normalizers");
  vocabulary.algorithm = Algorithm::byte_level_bpe;
  vocabulary.pre = pre;
  if (member(normalizer, "type") == "NFC") vocabulary.normalizer = Normalizer::nfc;
  vocabulary.ignore_merges = spec.ignore_merges;
  // Late tokens are looked for in the text between the others; where there are no others, at once.
  bool some_are_early = false;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    if (kind != TokenKind::control && kind != TokenKind::user_defined) continue;
    const auto rule =
        std::find_if(vocabulary.added.begin(), vocabulary.added.end(),
                     [&](const AddedRule& r) { return r.id == static_cast<TokenId>(id); });
    some_are_early = some_are_early || rule == vocabulary.added.end() || !rule->late;
  }
  if (!some_are_early) {
    for (AddedRule& rule : vocabulary.added) rule.late = false;
    std::erase_if(vocabulary.added, [](const AddedRule& rule) {
      return !rule.strip_left && !rule.strip_right && !rule.single_word;
    });
  }
  spell_bytes(vocabulary);
  return build_tokenizer(std::move(vocabulary), place);
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> read_tokenizer_json(const HfFiles& files,
                                                             const TokenizerOptions& options,
                                                             std::string_view place) {
  HEADRACE_ASSIGN(json root, parse_object(files.tokenizer, kTokenizerJson));
  HEADRACE_TRY(append_added_tokens_decoder(files, root["added_tokens"]));
  Vocabulary vocabulary;
  HEADRACE_ASSIGN(ModelSpec spec,
                  read_model(member(root, "model"), member(root, "added_tokens"), vocabulary));
  pad_vocabulary(vocabulary, options.num_rows);
  spec.pad(vocabulary.size());
  Pipeline pipeline;
  HEADRACE_TRY(read_post_processor(member(root, "post_processor"), vocabulary, pipeline.single,
                                   pipeline.pair));
  HEADRACE_TRY(read_special_tokens(files, vocabulary, pipeline.single, pipeline.pair));
  if (is_plain_bpe(root, vocabulary, spec) &&
      is_plain_template(pipeline.single, vocabulary.special)) {
    auto pre = options.pre.empty() ? recognise_pre_tokenizer(member(root, "pre_tokenizer"))
                                   : find_pre_tokenizer(options.pre);
    if (pre.ok()) return build_plain(root, std::move(vocabulary), spec, *pre, place);
    if (!options.pre.empty()) return std::move(pre).error().at("--pre-tokenizer");
  }
  HEADRACE_TRY(read_normalizer(member(root, "normalizer"), pipeline));
  HEADRACE_TRY(read_pre_tokenizer(member(root, "pre_tokenizer"), pipeline));
  HEADRACE_TRY(read_decoder(member(root, "decoder"), pipeline));
  pipeline.model = std::move(spec);
  cut_at_marks(vocabulary, pipeline);
  return build_pipeline(std::move(vocabulary), std::move(pipeline), place);
}

}  // namespace headrace::text
