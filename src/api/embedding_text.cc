// See embedding_text.h.
#include "api/embedding_text.h"

#include <algorithm>
#include <utility>

namespace headrace::api {
namespace {

/// Where a text is cut its last tokens may be others than in the whole.
constexpr int64_t kSlackTokens = 16;

/// The tokens that the model puts before and after a text.
struct Surroundings {
  std::vector<TokenId> before;
  std::vector<TokenId> after;

  int64_t size() const { return static_cast<int64_t>(before.size() + after.size()); }
};

bool ends_texts(const SpecialTokens& special, TokenId id) {
  return id >= 0 && (id == special.sep || id == special.eos);
}

Result<Surroundings> surroundings_of(const Tokenizer& tokenizer) {
  HEADRACE_ASSIGN(const auto ids, tokenizer.encode("", EncodeOptions{true, false}));
  Surroundings out;
  size_t begin = ids.size();
  const SpecialTokens& special = tokenizer.special();
  while (begin > 0 && ends_texts(special, ids[begin - 1]) && ids[begin - 1] != special.bos) --begin;
  out.before.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(begin));
  out.after.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end());
  return out;
}

Error too_long(const std::string& size, int64_t most, const std::string& what) {
  return {ErrorCode::context_length_exceeded,
          "the text of " + size + " does not fit the " + std::to_string(most) +
              " tokens that are allowed",
          what, "shorten it, or let it be cut with truncate"};
}

/// The begin of a text that so many tokens may stand for, and a little more; whole characters.
std::string_view begin_of_text(const ServedModel& model, std::string_view text, int64_t tokens) {
  if (model.longest_token_bytes <= 0) return text;
  const int64_t most = static_cast<int64_t>(text.size()) / model.longest_token_bytes;
  if (tokens > most - kSlackTokens) return text;
  auto end = static_cast<size_t>((tokens + kSlackTokens) * model.longest_token_bytes);
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

/// The tokens of a text alone, of which at most `most` (0: all) may be used.
Result<std::vector<TokenId>> plain_ids(const ServedModel& model, std::string_view text,
                                       int64_t most, LongTexts if_longer, const std::string& what) {
  if (most > 0 && if_longer == LongTexts::truncate) text = begin_of_text(model, text, most);
  if (most > 0 && if_longer == LongTexts::refuse && model.longest_token_bytes > 0) {
    const int64_t least = static_cast<int64_t>(text.size()) / model.longest_token_bytes;
    if (least > most) return too_long(std::to_string(least) + " tokens at least", most, what);
  }
  return model.tokenizer->encode(text, EncodeOptions{false, false});
}

TextWindow window_of(const Surroundings& around, const TokenId* begin, const TokenId* end) {
  TextWindow out;
  out.ids = around.before;
  out.ids.insert(out.ids.end(), begin, end);
  out.ids.insert(out.ids.end(), around.after.begin(), around.after.end());
  out.weight = static_cast<double>(end - begin);
  return out;
}

}  // namespace

Result<std::vector<TextWindow>> text_windows(const Prompt& prompt, bool adds_special,
                                             const ServedModel& model, const TextLimits& limits,
                                             const std::string& what) {
  Surroundings around;
  std::vector<TokenId> ids = prompt.ids;
  int64_t most = limits.most_tokens;
  if (prompt.text) {
    if (adds_special) {
      HEADRACE_ASSIGN(around, surroundings_of(*model.tokenizer));
    }
    if (most > 0) most -= around.size();
    if (limits.most_tokens > 0 && most <= 0) {
      return Error{ErrorCode::invalid_argument,
                   "leaves no room for a text beside the " + std::to_string(around.size()) +
                       " tokens that the model puts around it",
                   "truncate_prompt_tokens", "allow more"};
    }
    HEADRACE_ASSIGN(ids, plain_ids(model, *prompt.text, most, limits.if_longer, what));
  }
  if (ids.empty() && around.size() == 0) {
    return Error{ErrorCode::invalid_argument, "there are no tokens to make a vector of", what, ""};
  }
  const auto size = static_cast<int64_t>(ids.size());
  std::vector<TextWindow> out;
  const TokenId* const begin = ids.data();
  if (most <= 0 || size <= most) {
    out.push_back(window_of(around, begin, begin + size));
    out.back().weight = std::max(out.back().weight, 1.0);
    return out;
  }
  if (limits.if_longer == LongTexts::refuse) {
    return too_long(std::to_string(size + around.size()) + " tokens", limits.most_tokens, what);
  }
  for (int64_t at = 0; at < size; at += most) {
    out.push_back(window_of(around, begin + at, begin + std::min(size, at + most)));
    if (limits.if_longer == LongTexts::truncate) break;
  }
  return out;
}

Result<TextPair> text_pair(std::string_view query, std::string_view document,
                           const ServedModel& model, const TextLimits& limits,
                           const std::string& what) {
  const SpecialTokens& special = model.tokenizer->special();
  const TokenId begin = special.cls >= 0 ? special.cls : special.bos;
  const TokenId end = special.sep >= 0 ? special.sep : special.eos;
  if (begin < 0 || end < 0) {
    return Error{ErrorCode::unsupported,
                 "the tokenizer has no tokens to set a query and a document apart", "model",
                 "use a cross-encoder"};
  }
  TextPair out;
  out.ids = {begin};
  // One token at least is left to the document.
  const int64_t room = std::max<int64_t>(limits.most_tokens - 4, 1);
  HEADRACE_ASSIGN(const auto asked, plain_ids(model, query, limits.most_tokens > 0 ? room : 0,
                                              LongTexts::refuse, "query"));
  if (limits.most_tokens > 0 && static_cast<int64_t>(asked.size()) > room) {
    return too_long(std::to_string(asked.size()) + " tokens", room, "query");
  }
  out.ids.insert(out.ids.end(), asked.begin(), asked.end());
  out.ids.push_back(end);
  out.second_text = static_cast<int64_t>(out.ids.size());
  const int64_t left = limits.most_tokens > 0 ? limits.most_tokens - out.second_text - 1 : 0;
  HEADRACE_ASSIGN(auto told, plain_ids(model, document, left, limits.if_longer, what));
  if (left > 0 && static_cast<int64_t>(told.size()) > left) {
    if (limits.if_longer == LongTexts::refuse) {
      return too_long(std::to_string(told.size()) + " tokens beside the query", left, what);
    }
    told.resize(static_cast<size_t>(left));
  }
  out.ids.insert(out.ids.end(), told.begin(), told.end());
  out.ids.push_back(end);
  return out;
}

}  // namespace headrace::api
