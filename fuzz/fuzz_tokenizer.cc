// A vocabulary from any bytes (GGUF metadata or tokenizer.json), then a text through it.
//
// Input: one byte that selects, then fields, each ended by a newline (0x0A). For metadata: key,
// sort ('s' text, 'i' integer, 'b' bool, 'S' texts, 'I' integers, 'F' numbers; items are
// separated by 0x1F), value; an empty key ends the list and the rest is the text to tokenise. For
// tokenizer.json: the JSON up to a zero byte, then the text.
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "text/base_tokenizer.h"
#include "text/detokenizer.h"
#include "text/hf/sentencepiece.h"
#include "text/hf/tokenizer_json.h"
#include "text/tokenizer.h"

namespace {

using namespace headrace;

std::string_view take(std::string_view& rest, char until) {
  const size_t end = rest.find(until);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return taken;
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Metadata read_metadata(std::string_view& rest) {
  Metadata metadata;
  while (!rest.empty()) {
    const std::string key(take(rest, '\n'));
    if (key.empty()) break;
    const std::string_view sort = take(rest, '\n');
    std::string_view value = take(rest, '\n');
    std::vector<std::string_view> items;
    for (std::string_view left = value; !left.empty();) items.push_back(take(left, '\x1F'));
    switch (sort.empty() ? 's' : sort[0]) {
      case 'i':
        metadata.set(key, number(value));
        break;
      case 'b':
        metadata.set(key, value == "1");
        break;
      case 'S':
        metadata.set(key, items);
        break;
      case 'I': {
        std::vector<int64_t> numbers;
        for (const std::string_view item : items) numbers.push_back(number(item));
        metadata.set(key, numbers);
        break;
      }
      case 'F': {
        std::vector<double> numbers;
        for (const std::string_view item : items) {
          numbers.push_back(static_cast<double>(number(item)) / 8);
        }
        metadata.set(key, numbers);
        break;
      }
      default:
        metadata.set(key, value);
    }
  }
  return metadata;
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool flag : {false, true}) {
    const auto ids = tokenizer.encode(text, {.add_special = flag, .parse_special = flag});
    if (!ids.ok()) {
      // A vocabulary without an unknown token, or a pattern that takes too long.
      const ErrorCode code = ids.error().code;
      if (code != ErrorCode::unsupported && code != ErrorCode::resource_exhausted) std::abort();
      continue;
    }
    for (const TokenId id : *ids) {
      if (id < 0 || id >= tokenizer.vocab_size()) std::abort();
    }
    tokenizer.decode(*ids, flag);
    const std::vector<TextSegment> segments = {{std::string(text.substr(0, text.size() / 2)), flag},
                                               {std::string(text.substr(text.size() / 2)), true}};
    static_cast<void>(tokenizer.encode(segments, flag));
  }
  if (!check_same_tokenizer(tokenizer, "a", tokenizer, "b").ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1) != 0) {
    const std::string_view json = take(rest, '\0');
    TokenizerOptions options;
    if ((data[0] & 2) != 0) options.pre = "qwen2";
    text::HfFiles files;
    files.tokenizer = json;
    const text::HfFiles alone = files;
    files.tokenizer_config = files.generation_config = files.special_tokens_map = rest;
    auto tokenizer = text::read_tokenizer_json(files, options, "tokenizer.json");
    if (!tokenizer.ok()) tokenizer = text::read_tokenizer_json(alone, options, "tokenizer.json");
    if (tokenizer.ok()) use(**tokenizer, rest);
    return 0;
  }
  if ((data[0] & 4) != 0) {
    auto model = text::read_sentencepiece(rest);
    if (!model.ok()) return 0;
    const auto made =
        text::build_sentencepiece(std::move(*model), text::HfFiles(), "tokenizer.model");
    if (made.ok()) use(**made, rest.substr(0, 200));
    return 0;
  }
  const Metadata metadata = read_metadata(rest);
  const auto tokenizer = make_tokenizer(metadata, {});
  if (tokenizer.ok()) use(**tokenizer, rest);
  return 0;
}
