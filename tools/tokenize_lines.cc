// Tokenises texts for tools/compare_tokenizers.py: a JSON string a line from standard input, and a
// line of JSON for each: ids without special tokens, ids with them, and the text of the former with
// and without special tokens.
//
//   tokenize_lines DIRECTORY < texts.jsonl
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace {

using namespace headrace;
using nlohmann::json;

std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer,
                     const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(tokenizer, true);
  std::string out;
  for (const TokenId id : ids) out += detokenizer.push(id);
  return out + detokenizer.finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_lines DIRECTORY < texts.jsonl\n";
    return 2;
  }
  const auto tokenizer = open_hf_tokenizer(argv[1], {});
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.error().to_string() << "\n";
    return 1;
  }
  std::cerr << (*tokenizer)->description() << "\n";
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::string body = json::parse(line).get<std::string>();
    const auto plain = (*tokenizer)->encode(body, {.add_special = false, .parse_special = true});
    const auto full = (*tokenizer)->encode(body, {.add_special = true, .parse_special = true});
    if (!plain.ok() || !full.ok()) {
      std::cout << json{{"error",
                         plain.ok() ? full.error().to_string() : plain.error().to_string()}}
                << "\n";
      continue;
    }
    const std::string decoded = (*tokenizer)->decode(*full, true);
    std::cout << json{{"ids", *plain},
                      {"full", *full},
                      {"all", text::replace_invalid((*tokenizer)->decode(*full, false))},
                      {"text", text::replace_invalid(decoded)},
                      {"streamed", streamed(*tokenizer, *full)}}
              << "\n";
  }
}
