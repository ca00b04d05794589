// Any bytes through every pre-tokeniser: the words must join to the text, none may be empty.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "text/pretokenize.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::text;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const PreTokenizerName& pre : known_pre_tokenizers()) {
    size_t at = 0;
    pretokenize(pre.rules, text, [&](std::string_view word) {
      if (word.empty() || word.data() != text.data() + at) std::abort();
      at += word.size();
    });
    if (at != text.size()) std::abort();
  }
  const std::string composed = to_nfc(text);
  if (surely_nfc(text) && composed != text) std::abort();
  const std::string valid = replace_invalid(text);
  if (replace_invalid(valid) != valid || incomplete_tail(text) > 3) std::abort();
  return 0;
}
