// The normalisers of tokenizer files, one function each. The names and rules: Hugging Face
// tokenizers, src/normalizers. Must not know JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/hf/charsmap.h"
#include "text/hf/regex.h"
#include "text/hf/text_step.h"

namespace headrace::text {

using TextStepPtr = std::unique_ptr<const TextStep>;

enum class NormalForm : uint8_t { c, d, kc, kd };

TextStepPtr make_normal_form(NormalForm form);
TextStepPtr make_lowercase();
TextStepPtr make_strip(bool left, bool right);
/// Leaves out the marks (category M).
TextStepPtr make_strip_accents();
/// Every match of a text, or of a pattern, by `content`.
TextStepPtr make_replace_text(std::string text, std::string content);
TextStepPtr make_replace_regex(Regex regex, std::string content);
/// `text` before a text that is not empty.
TextStepPtr make_prepend(std::string text);

struct BertRules {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
TextStepPtr make_bert_normalizer(const BertRules& rules);
TextStepPtr make_nmt();
/// As the tokenizers library reads a charsmap: cluster by cluster.
TextStepPtr make_precompiled(Charsmap charsmap);
/// Every byte by its character of the byte-level alphabet.
TextStepPtr make_byte_level_normalizer();

/// What SentencePiece itself does before a text is cut (src/normalizer.cc).
struct SentencePieceRules {
  std::optional<Charsmap> charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
};
TextStepPtr make_sentencepiece_normalizer(SentencePieceRules rules);

/// Every byte of `text` as its character of the byte-level alphabet, appended to `out`.
void append_byte_level(std::string_view text, std::string& out);

}  // namespace headrace::text
