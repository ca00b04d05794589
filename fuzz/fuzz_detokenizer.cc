// Any ids through the detokeniser: what is streamed equals what is decoded at once, and every part
// is whole characters.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/test_vocabulary.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const std::shared_ptr<const Tokenizer> tokenizers[] = {
      text::byte_level_example().build(), text::sentencepiece_example().build()};
  if (size == 0) return 0;
  const auto& tokenizer = tokenizers[data[0] & 1];
  const bool skip_special = (data[0] & 2) != 0;
  std::vector<TokenId> ids;
  for (size_t i = 1; i + 1 < size; i += 2) ids.push_back((data[i] | (data[i + 1] << 8)) % 300 - 2);
  Detokenizer stream(tokenizer, skip_special);
  std::string joined;
  for (const TokenId id : ids) {
    const std::string part = stream.push(id);
    if (text::replace_invalid(part) != part) std::abort();
    joined += part;
  }
  joined += stream.finish();
  if (joined != text::replace_invalid(tokenizer->decode(ids, skip_special))) std::abort();
  return 0;
}
