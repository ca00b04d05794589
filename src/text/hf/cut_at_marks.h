// Cuts long texts for models that do not cut them themselves, where that changes nothing: words are
// then remembered. Must not know JSON.
#pragma once

#include "text/hf/pipeline.h"

namespace headrace::text {

/// Where no token has U+2581 behind another character, nothing joins across a place before one: the
/// text is cut there, by one more step. Also sets pipeline.keeps_bytes where bytes are tokens. Only
/// for BPE and Unigram without steps that cut.
void cut_at_marks(const Vocabulary& vocabulary, Pipeline& pipeline);

}  // namespace headrace::text
