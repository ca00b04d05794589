// The table of pre-tokenisers and the loops over their words; see pretokenize.h.
#include "text/pretokenize.h"

#include <algorithm>
#include <array>

#include "checkpoint/quote_name.h"
#include "text/split_stages.h"
#include "text/word_scanners.h"

namespace headrace::text {
namespace {

using enum PreTokenizer;

// Sorted by name. The names and which rules they mean: the GGUF files' `tokenizer.ggml.pre`.
constexpr std::array kNames = std::to_array<PreTokenizerName>({
    {"a.x-4.0", gpt2, false, false},
    {"codeshell", digits_gpt2, false, false},
    {"command-r", digits_gpt2, false, false},
    {"dbrx", llama3, false, false},
    {"deepseek-coder", deepseek_coder, false, false},
    {"deepseek-llm", deepseek_llm, false, false},
    {"deepseek-r1-qwen", qwen2, false, false},
    {"deepseek-v3", deepseek_v3, false, false},
    {"default", common, false, false},
    {"exaone", digits_gpt2, false, false},
    {"falcon", falcon, false, false},
    {"falcon-h1", llama3, true, true},
    {"falcon3", llama3, true, true},
    {"gigachat", gpt2, false, false},
    {"gpt-2", gpt2, false, false},
    {"gpt-4o", gpt4o, false, false},
    {"granite-docling", gpt2, false, false},
    {"grok-2", qwen2, false, false},
    {"hunyuan", qwen2, false, false},
    {"hunyuan-dense", deepseek_v3, false, false},
    {"jais", gpt2, false, false},
    {"kormo", qwen2, false, false},
    {"lfm2", llama3, true, true},
    {"llama-bpe", llama3, true, true},
    {"llama-v3", llama3, true, true},
    {"llama3", llama3, true, true},
    {"llama4", gpt4o, false, false},
    {"mellum", gpt2, false, false},
    {"midm-2.0", llama3, true, true},
    {"minerva-7b", digits_gpt2, false, false},
    {"mpt", gpt2, false, false},
    {"olmo", gpt2, false, false},
    {"phi-2", gpt2, false, false},
    {"pixtral", llama3, true, true},
    {"qwen2", qwen2, false, false, true},
    {"refact", digits_gpt2, false, false},
    {"smaug-bpe", llama3, false, false},
    {"smollm", digits_gpt2, false, false},
    {"stablelm2", qwen2, false, false},
    {"starcoder", digits_gpt2, false, false},
    {"tekken", tekken, true, false},
    {"trillion", gpt2, false, false},
});

using WordScanner = const char* (*)(const CharReader&, const char*);

template <WordScanner kNext>
void each_word(std::string_view text, FunctionRef<void(std::string_view)> word) {
  const CharReader reader(text.data() + text.size());
  for (const char* p = text.data(); p < reader.end();) {
    const char* const end = kNext(reader, p);
    word({p, static_cast<size_t>(end - p)});
    p = end;
  }
}

}  // namespace

std::span<const PreTokenizerName> known_pre_tokenizers() {
  return kNames;
}

Result<PreTokenizerName> find_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizerName& entry : kNames) {
    if (entry.name == name) return entry;
    known += known.empty() ? "" : ", ";
    known += entry.name;
  }
  return Error{ErrorCode::unsupported,
               "unknown pre-tokeniser " + quote_name(name) + ", expected one of " + known, "",
               "choose one with --pre-tokenizer NAME"};
}

void pretokenize(PreTokenizer rules, std::string_view text,
                 FunctionRef<void(std::string_view)> word) {
  switch (rules) {
    case gpt2:
      return each_word<gpt2_word<false>>(text, word);
    case digits_gpt2:
      return each_word<gpt2_word<true>>(text, word);
    case llama3:
      return each_word<llama3_word<3>>(text, word);
    case qwen2:
      return each_word<llama3_word<1>>(text, word);
    case tekken:
      return each_word<cased_word<1, false>>(text, word);
    case gpt4o:
      return each_word<cased_word<3, true>>(text, word);
    case deepseek_llm:
      return split_in_stages(kDeepseekLlmStages, text, word);
    case deepseek_coder:
      return split_in_stages(kDeepseekCoderStages, text, word);
    case deepseek_v3:
      return split_in_stages(kDeepseekV3Stages, text, word);
    case falcon:
      return split_in_stages(kFalconStages, text, word);
    case common:
      return split_in_stages(kCommonStages, text, word);
    case none:
      if (!text.empty()) word(text);
      return;
  }
}

}  // namespace headrace::text
