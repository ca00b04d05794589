// The pre-tokenisers of tokenizer files, one function each. The names and rules: Hugging Face
// tokenizers, src/pre_tokenizers. Must not know JSON.
#pragma once

#include <string>

#include "text/hf/cutter.h"
#include "text/hf/regex.h"
#include "text/pretokenize.h"

namespace headrace::text {

/// What becomes of the matches that cut a text.
enum class SplitBehavior : uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous
};

enum class PrependScheme : uint8_t { first, never, always };

/// Words by the GPT-2 pattern where `use_regex`; every byte becomes its character of the byte-level
/// alphabet.
CutterPtr make_byte_level(bool add_prefix_space, bool use_regex);
CutterPtr make_whitespace();
CutterPtr make_whitespace_split();
CutterPtr make_bert_pre_tokenizer();
CutterPtr make_metaspace(std::string replacement, PrependScheme scheme, bool split);
CutterPtr make_punctuation(SplitBehavior behavior);
CutterPtr make_digits(bool individual);
CutterPtr make_split_text(std::string text, SplitBehavior behavior, bool invert);
CutterPtr make_split_regex(Regex regex, SplitBehavior behavior, bool invert);
/// A published pattern by its hand-written scanner; its matches are isolated.
CutterPtr make_split_known(const PreTokenizerName& rules);
/// `length` characters a piece, at least 1.
CutterPtr make_fixed_length(size_t length);
/// Where the script changes. Error (unsupported): PCRE2 was built without Unicode properties.
Result<CutterPtr> make_unicode_scripts();

}  // namespace headrace::text
