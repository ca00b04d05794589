// Cuts text into the words that byte-level BPE merges within. Owns the rules of each published
// pre-tokeniser. Must not know vocabularies.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "headrace/result.h"

namespace headrace::text {

/// The distinct sets of rules. Several names in model files mean the same set.
enum class PreTokenizer {
  gpt2,         ///< the GPT-2 pattern
  digits_gpt2,  ///< every digit alone first, then the GPT-2 pattern (smollm, starcoder, ...)
  llama3,       ///< numbers of up to three digits, line breaks kept with what is before
  qwen2,        ///< as llama3, but every digit alone
  deepseek_llm,
  deepseek_coder,
  deepseek_v3,
  falcon,
  tekken,  ///< words split where case changes (Mistral Nemo)
  gpt4o,   ///< as tekken, with contractions and three digits
  common,  ///< what "default" means: punctuation first, then the GPT-2 pattern
  none     ///< the whole text is one word
};

/// What is known of a pre-tokeniser's name.
struct PreTokenizerName {
  std::string_view name;
  PreTokenizer rules;
  bool ignore_merges;  ///< a word that is a token is that token, whatever the merges give
  bool add_bos;        ///< the model adds BOS unless its file says otherwise
  bool nfc = false;    ///< the models' own tokenizers bring text to form C, which GGUF cannot say
};

/// The names as `tokenizer.ggml.pre` spells them, sorted.
std::span<const PreTokenizerName> known_pre_tokenizers();

/// Error (unsupported) naming `name`, the known ones and the flag that overrides.
Result<PreTokenizerName> find_pre_tokenizer(std::string_view name);

/// Calls `word` for each word in order; joined they are `text`. Never recurses on the input; time
/// is linear in its length. Ill-formed UTF-8 counts as symbols.
void pretokenize(PreTokenizer rules, std::string_view text,
                 FunctionRef<void(std::string_view)> word);

}  // namespace headrace::text
