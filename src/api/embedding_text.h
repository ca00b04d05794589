// From a text, or a pair of them, to the tokens of an embedding or a ranking: with what the model
// puts around texts, and cut or split where it is too long. Must not know bodies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/completion_request.h"
#include "api/served_model.h"
#include "headrace/result.h"

namespace headrace::api {

/// What becomes of a text with more tokens than are allowed.
enum class LongTexts : uint8_t {
  refuse,    ///< an error with both numbers
  truncate,  ///< its begin is kept
  split,     ///< it becomes several, one after the other
};

struct TextLimits {
  int64_t most_tokens = 0;  ///< what the model puts around a text included; 0: no limit
  LongTexts if_longer = LongTexts::refuse;
};

/// Tokens of which a model makes one vector.
struct TextWindow {
  std::vector<TokenId> ids;
  double weight = 0;  ///< tokens of the text in it
};

/// The windows of a text, in order: one, unless it is to be split. Tokens that the model puts
/// around a text are around each of them (not where the prompt is ids: these are taken as they
/// are, but for the cutting). `what`: "" or "input[3]", where errors are. Errors: invalid_argument
/// (nothing is left to embed), context_length_exceeded, those of the tokenizer.
Result<std::vector<TextWindow>> text_windows(const Prompt& prompt, bool adds_special,
                                             const ServedModel& model, const TextLimits& limits,
                                             const std::string& what);

/// A query and a document as a cross-encoder reads them: [CLS] query [SEP] document [SEP].
struct TextPair {
  std::vector<TokenId> ids;
  int64_t second_text = 0;  ///< where the document begins
};

/// Of a document that is too long the begin is kept, if `limits` says so; the query is never cut.
/// Errors: unsupported (a tokenizer without these tokens), those of text_windows().
Result<TextPair> text_pair(std::string_view query, std::string_view document,
                           const ServedModel& model, const TextLimits& limits,
                           const std::string& what);

}  // namespace headrace::api
