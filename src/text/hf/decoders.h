// The decoders of tokenizer files, one function each. The names and rules: Hugging Face tokenizers,
// src/decoders. They work on tokens as they come, with the text that the library makes of all at
// once; only where byte tokens are no UTF-8 the bytes stay, instead of one U+FFFD for each byte
// token of the run. Must not know JSON.
#pragma once

#include <string>

#include "text/hf/decoder.h"
#include "text/hf/text_step.h"

namespace headrace::text {

DecodeStepPtr make_byte_level_decoder();
/// `drops_first`: marks in the first token are no spaces.
DecodeStepPtr make_metaspace_decoder(std::string replacement, bool drops_first);
DecodeStepPtr make_wordpiece_decoder(std::string prefix, bool cleanup);
DecodeStepPtr make_bpe_decoder(std::string suffix);
DecodeStepPtr make_byte_fallback_decoder();
DecodeStepPtr make_fuse_decoder();
/// Takes up to `start` and `stop` characters `content` from the ends of each token.
DecodeStepPtr make_strip_decoder(std::string content, size_t start, size_t stop);
/// A normaliser's step on each token.
DecodeStepPtr make_replace_decoder(std::unique_ptr<const TextStep> step);
DecodeStepPtr make_ctc_decoder(std::string pad, std::string delimiter, bool cleanup);
/// Where a file has none: tokens with spaces between.
DecodeStepPtr make_joining_decoder();

}  // namespace headrace::text
