// See logprobs_json.h.
#include "api/logprobs_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/detokenizer.h"
#include "text/unicode.h"

namespace headrace::api {
namespace {

double json_logprob(float value) {
  constexpr double kNone = -9999;
  return std::isfinite(value) ? static_cast<double>(value) : kNone;
}

/// The token's bytes as text; what is no whole character becomes U+FFFD.
std::string token_text(TokenId id, const Tokenizer& tokenizer) {
  return text::replace_invalid(tokenizer.bytes(id));
}

/// A key, which must differ between tokens: parts of characters are "bytes:\xf0\x9f".
std::string token_key(TokenId id, const Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.bytes(id);
  if (text::replace_invalid(bytes) == bytes) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

size_t num_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

size_t num_told(const std::vector<TokenLogprob>& top, int32_t num_top) {
  return std::min(top.size(), static_cast<size_t>(std::max(num_top, 0)));
}

Json one_chat_token(TokenId id, float logprob, const Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.bytes(id);
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {
      {"token", token_text(id, tokenizer)}, {"logprob", json_logprob(logprob)}, {"bytes", list}};
}

/// The four lists of a completion, filled token by token.
struct Lists {
  Json tokens = Json::array();
  Json token_logprobs = Json::array();
  Json top_logprobs = Json::array();
  Json text_offset = Json::array();

  void add(TokenId id, size_t offset, const Tokenizer& tokenizer) {
    tokens.push_back(token_key(id, tokenizer));
    text_offset.push_back(offset);
  }
  void add_unknown() {
    token_logprobs.push_back(nullptr);
    top_logprobs.push_back(nullptr);
  }
  void add_known(TokenId id, float logprob, const std::vector<TokenLogprob>& top, int32_t num_top,
                 const Tokenizer& tokenizer) {
    token_logprobs.push_back(json_logprob(logprob));
    Json told = Json::object();
    for (size_t i = 0; i < num_told(top, num_top); ++i) {
      told.emplace(token_key(top[i].id, tokenizer), json_logprob(top[i].logprob));
    }
    told.emplace(token_key(id, tokenizer), json_logprob(logprob));
    top_logprobs.push_back(std::move(told));
  }
};

/// In the characters of `echo`, as far as its tokens spell it.
void add_prompt(Lists& lists, const std::string& echo, const PromptTokens& prompt, int32_t num_top,
                const std::shared_ptr<const Tokenizer>& tokenizer) {
  // A text's own prompt lacks the tokens that were put around it.
  const bool skips_special = tokenizer->decode(prompt.ids, false) != echo;
  Detokenizer detokenizer(tokenizer, skips_special);
  size_t offset = 0;
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    lists.add(prompt.ids[i], offset, *tokenizer);
    offset += num_characters(detokenizer.push(prompt.ids[i]));
    if (i == 0 || i > prompt.logprobs.size()) {
      lists.add_unknown();
    } else {
      const PromptLogprob& known = prompt.logprobs[i - 1];
      lists.add_known(prompt.ids[i], known.token.logprob, known.top, num_top, *tokenizer);
    }
  }
}

}  // namespace

Json chat_logprobs(const Choice& choice, int32_t num_top, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const TokenText& token : choice.tokens) {
    Json entry = one_chat_token(token.id, token.logprob, tokenizer);
    Json top = Json::array();
    for (size_t i = 0; i < num_told(token.top, num_top); ++i) {
      top.push_back(one_chat_token(token.top[i].id, token.top[i].logprob, tokenizer));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs(const Choice& choice, const std::string* echo, const PromptTokens& prompt,
                         int32_t num_top, const std::shared_ptr<const Tokenizer>& tokenizer) {
  Lists lists;
  size_t offset = 0;
  if (echo != nullptr) {
    add_prompt(lists, *echo, prompt, num_top, tokenizer);
    offset = num_characters(*echo);
  }
  size_t counted = 0;  // bytes of the text whose characters are in `offset`
  for (const TokenText& token : choice.tokens) {
    offset += num_characters(std::string_view(choice.text).substr(counted, token.begin - counted));
    counted = token.begin;
    lists.add(token.id, offset, *tokenizer);
    lists.add_known(token.id, token.logprob, token.top, num_top, *tokenizer);
  }
  return {{"text_offset", std::move(lists.text_offset)},
          {"token_logprobs", std::move(lists.token_logprobs)},
          {"tokens", std::move(lists.tokens)},
          {"top_logprobs", std::move(lists.top_logprobs)}};
}

Json prompt_logprobs(const PromptTokens& prompt, int32_t num_top, const Tokenizer& tokenizer) {
  Json out = Json::array();
  if (!prompt.ids.empty()) out.push_back(nullptr);
  for (const PromptLogprob& known : prompt.logprobs) {
    Json entry = Json::object();
    const auto add = [&](const TokenLogprob& token, Json rank) {
      entry.emplace(std::to_string(token.id),
                    Json{{"logprob", json_logprob(token.logprob)},
                         {"rank", std::move(rank)},
                         {"decoded_token", token_text(token.id, tokenizer)}});
    };
    for (size_t i = 0; i < num_told(known.top, num_top); ++i) add(known.top[i], i + 1);
    add(known.token, nullptr);
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace headrace::api
