// The identity of a tokenizer and the comparison of two; see tokenizer.h.
#include <algorithm>
#include <array>

#include "checkpoint/quote_name.h"
#include "text/base_tokenizer.h"
#include "text/digest.h"
#include "text/tokenizer_texts.h"

namespace headrace::text {
namespace {

// Rows without a meaning of their own do not make two vocabularies different.
bool counts(const Vocabulary& v, size_t id) {
  return v.kinds[id] != TokenKind::unused && !is_padding_row(v.pieces[id], id);
}

/// How a token is treated. Formats differ in whether they tell bytes from other text, and unknown
/// tokens from control tokens.
enum class Treatment : uint8_t { text, matched, hidden };

Treatment treatment_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::control:
    case TokenKind::unknown:
      return Treatment::hidden;
    case TokenKind::user_defined:
      return Treatment::matched;
    default:
      return Treatment::text;
  }
}

/// Whether the list of merges is the same in every format. Of a SentencePiece vocabulary GGUF and
/// tokenizer.model have scores, tokenizer.json merges.
bool counts_merges(const Vocabulary& v) {
  return v.index.find(v.pieces, kSpaceMark) < 0;
}

/// The tokens that are matched in any text, each with text on both sides.
std::string text_of_matched(const Vocabulary& v) {
  std::string text;
  for (size_t id = 0; id < v.size(); ++id) {
    if (counts(v, id) && v.kinds[id] == TokenKind::user_defined) {
      text.append(" a ").append(v.pieces[id]).append(" b");
    }
  }
  return text;
}

/// A text that cannot be tokenised has the same tokens as none: -1.
std::vector<TokenId> tokens_of(const BaseTokenizer& tokenizer, std::string_view text,
                               bool add_special = false) {
  auto ids = tokenizer.encode(text, {.add_special = add_special, .parse_special = false});
  return ids.ok() ? std::move(ids).value() : std::vector<TokenId>{-1};
}

void add_tokens_to(Digest& digest, const std::vector<TokenId>& ids) {
  digest.add_number(ids.size());
  for (const TokenId id : ids) digest.add_number(static_cast<uint64_t>(id));
}

std::string describe_token(const Vocabulary& v, size_t id) {
  return id < v.size() && counts(v, id) ? quote_name(v.pieces[id]) : "none";
}

std::string describe_merge(const Vocabulary& v, size_t i) {
  if (i >= v.merges.size()) return "none";
  const auto piece = [&](TokenId id) { return std::string(v.pieces[static_cast<size_t>(id)]); };
  return quote_name(piece(v.merges[i].left) + " " + piece(v.merges[i].right));
}

std::string describe_ids(const std::vector<TokenId>& ids) {
  constexpr size_t kShownIds = 12;
  std::string out;
  for (size_t i = 0; i < std::min(ids.size(), kShownIds); ++i) {
    out += (i == 0 ? "" : " ") + std::to_string(ids[i]);
  }
  return "[" + out + (ids.size() > kShownIds ? " ..." : "") + "]";
}

// "x vs y" for the first token or merge that differs; empty: none does.
std::string different_tokens(const Vocabulary& a, const Vocabulary& b) {
  for (size_t id = 0; id < std::max(a.size(), b.size()); ++id) {
    const std::string in_a = describe_token(a, id);
    const std::string in_b = describe_token(b, id);
    const std::string which = "token " + std::to_string(id) + ": ";
    if (in_a != in_b) return which + in_a + " vs " + in_b;
    if (id >= a.size() || id >= b.size() || !counts(a, id)) continue;
    if (treatment_of(a.kinds[id]) != treatment_of(b.kinds[id])) {
      return which + in_a + " is of another kind";
    }
  }
  const size_t num_merges = counts_merges(a) ? std::max(a.merges.size(), b.merges.size()) : 0;
  for (size_t i = 0; i < num_merges; ++i) {
    const std::string in_a = describe_merge(a, i);
    const std::string in_b = describe_merge(b, i);
    if (in_a != in_b) return "merge " + std::to_string(i) + ": " + in_a + " vs " + in_b;
  }
  return "";
}

// The first rule that differs, of two vocabularies that spell their rules alike; empty: none does.
std::string different_rules(const Vocabulary& a, const Vocabulary& b) {
  if (a.algorithm != b.algorithm) return "";
  if (a.pre.rules != b.pre.rules) {
    return "pre-tokeniser: " + quote_name(a.pre.name) + " vs " + quote_name(b.pre.name);
  }
  if (a.normalizer != b.normalizer) return "the normaliser";
  for (size_t i = 0; i < std::max(a.steps.size(), b.steps.size()); ++i) {
    const std::string in_a = i < a.steps.size() ? quote_name(a.steps[i]) : "none";
    const std::string in_b = i < b.steps.size() ? quote_name(b.steps[i]) : "none";
    if (in_a != in_b) return in_a + " vs " + in_b;
  }
  return a.space_prefix != b.space_prefix ? "the space before the text" : "";
}

// The first text whose tokens differ.
std::string different_text(const BaseTokenizer& a, const BaseTokenizer& b) {
  std::vector<std::string> texts = tokenizer_texts();
  texts.push_back(text_of_matched(a.vocabulary()));
  for (const std::string& text : texts) {
    const auto in_a = tokens_of(a, text);
    const auto in_b = tokens_of(b, text);
    if (in_a == in_b) continue;
    return "the text " + quote_name(text) + " is " + describe_ids(in_a) + " vs " +
           describe_ids(in_b);
  }
  return "";
}

std::string first_difference(const BaseTokenizer& a, const BaseTokenizer& b) {
  if (auto found = different_tokens(a.vocabulary(), b.vocabulary()); !found.empty()) return found;
  const auto around_a = tokens_of(a, "", true);
  const auto around_b = tokens_of(b, "", true);
  if (around_a != around_b) {
    return "what stands around a text: " + describe_ids(around_a) + " vs " + describe_ids(around_b);
  }
  if (auto found = different_rules(a.vocabulary(), b.vocabulary()); !found.empty()) return found;
  return different_text(a, b);
}

}  // namespace

TokenizerFingerprint fingerprint_of(const BaseTokenizer& tokenizer) {
  const Vocabulary& v = tokenizer.vocabulary();
  Digest digest;
  digest.add("headrace tokenizer 2");
  for (size_t id = 0; id < v.size(); ++id) {
    if (!counts(v, id)) continue;
    digest.add_number((uint64_t{id} << 8) | static_cast<uint64_t>(treatment_of(v.kinds[id])));
    digest.add(v.pieces[id]);
  }
  if (counts_merges(v)) {
    digest.add_number(v.merges.size());
    for (const MergeRule& rule : v.merges) {
      digest.add_number((uint64_t{static_cast<uint32_t>(rule.left)} << 32) |
                        static_cast<uint32_t>(rule.right));
    }
  }
  add_tokens_to(digest, tokens_of(tokenizer, "", true));
  for (const std::string& text : tokenizer_texts()) {
    add_tokens_to(digest, tokens_of(tokenizer, text));
  }
  add_tokens_to(digest, tokens_of(tokenizer, text_of_matched(v)));
  return {digest.hex()};
}

}  // namespace headrace::text

namespace headrace {

Result<void> check_same_tokenizer(const Tokenizer& a, std::string_view what_a, const Tokenizer& b,
                                  std::string_view what_b) {
  if (a.fingerprint() == b.fingerprint()) return {};
  const auto* const base_a = dynamic_cast<const text::BaseTokenizer*>(&a);
  const auto* const base_b = dynamic_cast<const text::BaseTokenizer*>(&b);
  const std::string difference =
      base_a != nullptr && base_b != nullptr
          ? text::first_difference(*base_a, *base_b)
          : "fingerprint " + a.fingerprint().digest + " vs " + b.fingerprint().digest;
  return Error{ErrorCode::mismatch,
               std::string(what_a) + " and " + std::string(what_b) +
                   " have different tokenizers, first difference: " + difference,
               "", "use a " + std::string(what_b) + " made for the same vocabulary"};
}

}  // namespace headrace
