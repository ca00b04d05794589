// See read_steps.h. The fields: Hugging Face tokenizers, the JSON form of each step.
#include "text/hf/read_steps.h"

#include <nlohmann/json.hpp>
#include <string>

#include "text/hf/decoders.h"
#include "text/hf/hf_pretokenizer.h"
#include "text/hf/json_fields.h"
#include "text/hf/normalizers.h"
#include "text/hf/pre_tokenizers.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

using nlohmann::json;

constexpr size_t kMostSteps = 64;
constexpr int kMostStepDepth = 8;
constexpr size_t kMostStripped = 1 << 20;

Error unknown_type(std::string_view key, const json& step) {
  const json& type = member(step, "type");
  return bad_field(key, "unknown type " + shown(type), ErrorCode::unsupported);
}

// Calls `read` for a step, or for each of a Sequence, whose list is called `parts`.
template <class Read>
Result<void> each_step(const json& step, const char* parts, std::string_view key, int depth,
                       size_t& count, Read&& read) {
  if (step.is_null()) return {};
  if (member(step, "type") != "Sequence") {
    if (++count > kMostSteps) return bad_field(key, "expected at most 64 steps");
    return read(step);
  }
  const json& list = member(step, parts);
  if (!list.is_array()) return bad_field(key, std::string("expected an array `") + parts + "`");
  if (depth >= kMostStepDepth) return bad_field(key, "sequences nest more than 8 deep");
  for (const json& part : list) {
    HEADRACE_TRY(each_step(part, parts, key, depth + 1, count, read));
  }
  return {};
}

// A text of one character.
Result<std::string> character_or(const json& step, const char* name, std::string otherwise,
                                 std::string_view key) {
  HEADRACE_ASSIGN(std::string text, text_or(step, name, std::move(otherwise), key));
  if (text.empty() || decode_utf8(text.data(), text.data() + text.size()).size != text.size()) {
    return bad_field(std::string(key) + "." + name,
                     "expected one character, found " + shown(member(step, name)));
  }
  return text;
}

// `pattern`: a text, or a regular expression.
struct Pattern {
  std::string text;
  bool is_regex = false;
};

Result<Pattern> read_pattern(const json& step, std::string_view key) {
  const json& pattern = member(step, "pattern");
  for (const char* name : {"Regex", "String"}) {
    const json& text = member(pattern, name);
    if (text.is_string()) return Pattern{text.get<std::string>(), name[0] == 'R'};
  }
  if (pattern.is_string()) return Pattern{pattern.get<std::string>(), false};
  return bad_field(std::string(key) + ".pattern",
                   "expected {\"String\": ...} or {\"Regex\": ...}, found " + shown(pattern));
}

Result<Regex> compile(const Pattern& pattern, std::string_view key) {
  auto regex = Regex::compile(pattern.text);
  if (!regex.ok()) {
    return std::move(regex).error().at(std::string(kTokenizerJson) + ": " + std::string(key) +
                                       ".pattern");
  }
  return regex;
}

Result<TextStepPtr> read_replace(const json& step, std::string_view key) {
  HEADRACE_ASSIGN(Pattern pattern, read_pattern(step, key));
  HEADRACE_ASSIGN(std::string content, text_or(step, "content", "", key));
  // An empty text is found everywhere, as an empty pattern is.
  if (!pattern.is_regex && !pattern.text.empty())
    return make_replace_text(std::move(pattern.text), std::move(content));
  HEADRACE_ASSIGN(Regex regex, compile(pattern, key));
  return make_replace_regex(std::move(regex), std::move(content));
}

Result<TextStepPtr> read_precompiled(const json& step) {
  constexpr std::string_view kKey = "normalizer.precompiled_charsmap";
  const json& text = member(step, "precompiled_charsmap");
  if (!text.is_string()) return bad_field(kKey, "expected base64, found " + shown(text));
  const auto blob = decode_base64(text.get_ref<const std::string&>());
  if (!blob) return bad_field(kKey, "expected base64");
  auto charsmap = Charsmap::make(*blob);
  if (!charsmap.ok()) return bad_field(kKey, charsmap.error().message);
  return make_precompiled(std::move(*charsmap));
}

Result<TextStepPtr> read_text_step(const json& step) {
  const json& type = member(step, "type");
  if (type == "NFC") return make_normal_form(NormalForm::c);
  if (type == "NFD") return make_normal_form(NormalForm::d);
  if (type == "NFKC") return make_normal_form(NormalForm::kc);
  if (type == "NFKD") return make_normal_form(NormalForm::kd);
  if (type == "Lowercase") return make_lowercase();
  if (type == "Strip" || type == "StripNormalizer") {
    return make_strip(flag_or(step, "strip_left", true), flag_or(step, "strip_right", true));
  }
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Replace") return read_replace(step, "normalizer");
  if (type == "Prepend") {
    HEADRACE_ASSIGN(std::string text, text_or(step, "prepend", "", "normalizer"));
    return make_prepend(std::move(text));
  }
  if (type == "BertNormalizer") {
    BertRules rules;
    rules.clean_text = flag_or(step, "clean_text", true);
    rules.handle_chinese_chars = flag_or(step, "handle_chinese_chars", true);
    rules.lowercase = flag_or(step, "lowercase", true);
    rules.strip_accents = flag_or(step, "strip_accents", rules.lowercase);
    return make_bert_normalizer(rules);
  }
  if (type == "Nmt") return make_nmt();
  if (type == "Precompiled") return read_precompiled(step);
  if (type == "ByteLevel") return make_byte_level_normalizer();
  return unknown_type("normalizer", step);
}

Result<SplitBehavior> read_behavior(const json& step, const char* otherwise) {
  HEADRACE_ASSIGN(const std::string name, text_or(step, "behavior", otherwise, "pre_tokenizer"));
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  return bad_field("pre_tokenizer.behavior",
                   "expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous, "
                   "found " +
                       shown(member(step, "behavior")),
                   ErrorCode::unsupported);
}

Result<CutterPtr> read_split(const json& step) {
  HEADRACE_ASSIGN(Pattern pattern, read_pattern(step, "pre_tokenizer"));
  HEADRACE_ASSIGN(const SplitBehavior behavior, read_behavior(step, ""));
  const bool invert = is_true(step, "invert");
  if (!pattern.is_regex && !pattern.text.empty()) {
    return make_split_text(std::move(pattern.text), behavior, invert);
  }
  if (const auto known = recognise_split(step)) return make_split_known(*known);
  HEADRACE_ASSIGN(Regex regex, compile(pattern, "pre_tokenizer"));
  return make_split_regex(std::move(regex), behavior, invert);
}

Result<PrependScheme> read_scheme(const json& step, std::string_view key) {
  if (!flag_or(step, "add_prefix_space", true)) return PrependScheme::never;
  HEADRACE_ASSIGN(const std::string name, text_or(step, "prepend_scheme", "always", key));
  if (name == "first") return PrependScheme::first;
  if (name == "never") return PrependScheme::never;
  if (name == "always") return PrependScheme::always;
  return bad_field(
      std::string(key) + ".prepend_scheme",
      "expected first, never or always, found " + shown(member(step, "prepend_scheme")),
      ErrorCode::unsupported);
}

Result<CutterPtr> read_cutter(const json& step) {
  constexpr std::string_view kKey = "pre_tokenizer";
  const json& type = member(step, "type");
  if (type == "ByteLevel") {
    return make_byte_level(flag_or(step, "add_prefix_space", true),
                           flag_or(step, "use_regex", true));
  }
  if (type == "Whitespace") return make_whitespace();
  if (type == "WhitespaceSplit") return make_whitespace_split();
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Metaspace") {
    HEADRACE_ASSIGN(std::string mark,
                    character_or(step, "replacement", std::string(kSpaceMark), kKey));
    HEADRACE_ASSIGN(const PrependScheme scheme, read_scheme(step, kKey));
    return make_metaspace(std::move(mark), scheme, flag_or(step, "split", true));
  }
  if (type == "Punctuation") {
    HEADRACE_ASSIGN(const SplitBehavior behavior, read_behavior(step, "Isolated"));
    return make_punctuation(behavior);
  }
  if (type == "Digits") return make_digits(is_true(step, "individual_digits"));
  if (type == "Split") return read_split(step);
  if (type == "UnicodeScripts") return make_unicode_scripts();
  if (type == "CharDelimiterSplit" || type == "Delimiter") {
    HEADRACE_ASSIGN(std::string mark, character_or(step, "delimiter", "", kKey));
    return make_split_text(std::move(mark), SplitBehavior::removed, false);
  }
  if (type == "FixedLength") {
    HEADRACE_ASSIGN(const size_t length, count_or(step, "length", 5, 1 << 30, kKey));
    if (length == 0) return bad_field("pre_tokenizer.length", "expected at least 1, found 0");
    return make_fixed_length(length);
  }
  return unknown_type(kKey, step);
}

Result<DecodeStepPtr> read_decode_step(const json& step) {
  constexpr std::string_view kKey = "decoder";
  const json& type = member(step, "type");
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "Fuse") return make_fuse_decoder();
  if (type == "Metaspace") {
    HEADRACE_ASSIGN(std::string mark,
                    character_or(step, "replacement", std::string(kSpaceMark), kKey));
    HEADRACE_ASSIGN(const PrependScheme scheme, read_scheme(step, kKey));
    return make_metaspace_decoder(std::move(mark), scheme != PrependScheme::never);
  }
  if (type == "WordPiece") {
    HEADRACE_ASSIGN(std::string prefix, text_or(step, "prefix", "##", kKey));
    return make_wordpiece_decoder(std::move(prefix), flag_or(step, "cleanup", true));
  }
  if (type == "BPEDecoder") {
    HEADRACE_ASSIGN(std::string suffix, text_or(step, "suffix", "</w>", kKey));
    return make_bpe_decoder(std::move(suffix));
  }
  if (type == "Strip") {
    HEADRACE_ASSIGN(std::string content, character_or(step, "content", " ", kKey));
    HEADRACE_ASSIGN(const size_t start, count_or(step, "start", 0, kMostStripped, kKey));
    HEADRACE_ASSIGN(const size_t stop, count_or(step, "stop", 0, kMostStripped, kKey));
    return make_strip_decoder(std::move(content), start, stop);
  }
  if (type == "Replace") {
    HEADRACE_ASSIGN(TextStepPtr replace, read_replace(step, kKey));
    return make_replace_decoder(std::move(replace));
  }
  if (type == "CTC") {
    HEADRACE_ASSIGN(std::string pad, text_or(step, "pad_token", "<pad>", kKey));
    HEADRACE_ASSIGN(std::string delimiter, text_or(step, "word_delimiter_token", "|", kKey));
    return make_ctc_decoder(std::move(pad), std::move(delimiter), flag_or(step, "cleanup", true));
  }
  return unknown_type(kKey, step);
}

}  // namespace

Result<void> read_normalizer(const json& normalizer, Pipeline& pipeline) {
  size_t count = 0;
  return each_step(normalizer, "normalizers", "normalizer", 0, count,
                   [&](const json& step) -> Result<void> {
                     HEADRACE_ASSIGN(TextStepPtr made, read_text_step(step));
                     pipeline.normalizer.push_back(std::move(made));
                     if (member(step, "type") == "ByteLevel") pipeline.keeps_bytes = true;
                     return {};
                   });
}

Result<void> read_pre_tokenizer(const json& pre_tokenizer, Pipeline& pipeline) {
  size_t count = 0;
  return each_step(pre_tokenizer, "pretokenizers", "pre_tokenizer", 0, count,
                   [&](const json& step) -> Result<void> {
                     HEADRACE_ASSIGN(CutterPtr made, read_cutter(step));
                     pipeline.cutters.push_back(std::move(made));
                     if (member(step, "type") == "ByteLevel") pipeline.keeps_bytes = true;
                     return {};
                   });
}

Result<void> read_decoder(const json& decoder, Pipeline& pipeline) {
  size_t count = 0;
  bool joins = false;  // the step before makes one token of all
  HEADRACE_TRY(
      each_step(decoder, "decoders", "decoder", 0, count, [&](const json& step) -> Result<void> {
        if (joins) pipeline.decoder.push_back(make_fuse_decoder());
        HEADRACE_ASSIGN(DecodeStepPtr made, read_decode_step(step));
        pipeline.decoder.push_back(std::move(made));
        joins = member(step, "type") == "ByteLevel";
        return {};
      }));
  if (decoder.is_null()) pipeline.decoder.push_back(make_joining_decoder());
  return {};
}

}  // namespace headrace::text
