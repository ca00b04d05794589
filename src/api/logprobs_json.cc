// See logprobs_json.h.
#include "api/logprobs_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

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

}  // namespace

Json chat_logprobs(const Choice& choice, size_t first, int32_t num_top,
                   const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const TokenText& token : std::span(choice.tokens).subspan(first)) {
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

CompletionLogprobs::CompletionLogprobs(int32_t num_top, std::shared_ptr<const Tokenizer> tokenizer,
                                       TextPlace& place)
    : num_top_(num_top), tokenizer_(std::move(tokenizer)), place_(place) {}

void CompletionLogprobs::add(TokenId id, size_t offset) {
  tokens_.emplace_back(token_key(id, *tokenizer_));
  text_offset_.emplace_back(offset);
}

void CompletionLogprobs::add_known(TokenId id, float logprob,
                                   const std::vector<TokenLogprob>& top) {
  token_logprobs_.emplace_back(json_logprob(logprob));
  Json told = Json::object();
  for (size_t i = 0; i < num_told(top, num_top_); ++i) {
    told.emplace(token_key(top[i].id, *tokenizer_), json_logprob(top[i].logprob));
  }
  told.emplace(token_key(id, *tokenizer_), json_logprob(logprob));
  top_logprobs_.push_back(std::move(told));
}

void CompletionLogprobs::add_prompt(const std::string& echo, const PromptTokens& prompt) {
  // A text's own prompt lacks the tokens that were put around it.
  const bool skips_special = tokenizer_->decode(prompt.ids, false) != echo;
  Detokenizer detokenizer(tokenizer_, skips_special);
  size_t offset = 0;
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    add(prompt.ids[i], offset);
    offset += num_characters(detokenizer.push(prompt.ids[i]));
    if (i == 0 || i > prompt.logprobs.size()) {
      token_logprobs_.emplace_back(nullptr);
      top_logprobs_.emplace_back(nullptr);
    } else {
      const PromptLogprob& known = prompt.logprobs[i - 1];
      add_known(prompt.ids[i], known.token.logprob, known.top);
    }
  }
  place_.num_characters += num_characters(echo);
}

void CompletionLogprobs::add_tokens(const Choice& choice, size_t first) {
  const std::string_view text = choice.text;
  for (const TokenText& token : std::span(choice.tokens).subspan(first)) {
    place_.num_characters +=
        num_characters(text.substr(place_.text_bytes, token.begin - place_.text_bytes));
    place_.text_bytes = token.begin;
    add(token.id, place_.num_characters);
    add_known(token.id, token.logprob, token.top);
  }
}

Json CompletionLogprobs::take() {
  return {{"text_offset", std::move(text_offset_)},
          {"token_logprobs", std::move(token_logprobs_)},
          {"tokens", std::move(tokens_)},
          {"top_logprobs", std::move(top_logprobs_)}};
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
