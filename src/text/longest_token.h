// How much text one token can stand for. Must not know models.
#pragma once

#include <cstdint>

#include "text/tokenizer.h"

namespace headrace {

/// Bytes of the longest token's text, so that n bytes are at least n / longest tokens; 0 where that
/// does not follow: the tokenizer shortens texts, or has one token for whatever it does not know.
int64_t longest_token_bytes(const Tokenizer& tokenizer);

}  // namespace headrace
