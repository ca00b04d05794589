// Pre-tokenisers that cut the text several times, each cut within the pieces of the one before.
// Must not know vocabularies.
#pragma once

#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "text/word_scanners.h"

namespace headrace::text {

/// A match in the text: [begin, end), or begin == end where there is none.
struct Match {
  const char* begin;
  const char* end;
};

/// Finds the first match at or after `p` of one pattern, within a reader's text.
using FindMatch = Match (*)(const CharReader& text, const char* p);

extern const std::span<const FindMatch> kDeepseekLlmStages;
extern const std::span<const FindMatch> kDeepseekCoderStages;
extern const std::span<const FindMatch> kDeepseekV3Stages;
extern const std::span<const FindMatch> kFalconStages;
extern const std::span<const FindMatch> kCommonStages;

/// Applies the stages in order: a match and what lies between two matches are pieces of their own.
/// Recursion is as deep as there are stages.
void split_in_stages(std::span<const FindMatch> stages, std::string_view text,
                     FunctionRef<void(std::string_view)> word);

}  // namespace headrace::text
