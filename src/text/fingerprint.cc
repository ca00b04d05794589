// The identity of a vocabulary and the comparison of two; see tokenizer.h.
#include "checkpoint/quote_name.h"
#include "text/base_tokenizer.h"
#include "text/digest.h"

namespace headrace::text {
namespace {

// Rows without a meaning of their own do not make two vocabularies different.
bool counts(const Vocabulary& v, size_t id) {
  return v.kinds[id] != TokenKind::unused && !is_padding_row(v.pieces[id], id);
}

const AddedRule* rule_of(const Vocabulary& v, TokenId id) {
  for (const AddedRule& rule : v.added) {
    if (rule.id == id) return &rule;
  }
  return nullptr;
}

bool same_rule(const AddedRule* a, const AddedRule* b) {
  const AddedRule none;
  const AddedRule& x = a != nullptr ? *a : none;
  const AddedRule& y = b != nullptr ? *b : none;
  return x.strip_left == y.strip_left && x.strip_right == y.strip_right &&
         x.single_word == y.single_word && x.late == y.late;
}

std::string describe_token(const Vocabulary& v, size_t id) {
  return id < v.size() && counts(v, id) ? quote_name(v.pieces[id]) : "none";
}

std::string describe_merge(const Vocabulary& v, size_t i) {
  if (i >= v.merges.size()) return "none";
  const auto piece = [&](TokenId id) { return std::string(v.pieces[static_cast<size_t>(id)]); };
  return quote_name(piece(v.merges[i].left) + " " + piece(v.merges[i].right));
}

// "x vs y" for the first thing in which the two differ.
std::string first_difference(const Vocabulary& a, const Vocabulary& b) {
  if (a.algorithm != b.algorithm) return "the kind of tokenizer";
  const size_t n = std::max(a.size(), b.size());
  for (size_t id = 0; id < n; ++id) {
    const std::string in_a = describe_token(a, id);
    const std::string in_b = describe_token(b, id);
    const std::string which = "token " + std::to_string(id) + ": ";
    if (in_a != in_b) return which + in_a + " vs " + in_b;
    if (id >= a.size() || id >= b.size() || !counts(a, id)) continue;
    if (a.kinds[id] != b.kinds[id]) return which + in_a + " is of another kind";
    if (!a.scores.empty() && !b.scores.empty() && a.scores[id] != b.scores[id]) {
      return which + "score " + std::to_string(a.scores[id]) + " vs " +
             std::to_string(b.scores[id]);
    }
    const auto token = static_cast<TokenId>(id);
    if ((!a.added.empty() || !b.added.empty()) &&
        !same_rule(rule_of(a, token), rule_of(b, token))) {
      return which + in_a + " is matched by another rule";
    }
  }
  const size_t num_merges = std::max(a.merges.size(), b.merges.size());
  for (size_t i = 0; i < num_merges; ++i) {
    const std::string in_a = describe_merge(a, i);
    const std::string in_b = describe_merge(b, i);
    if (in_a != in_b) return "merge " + std::to_string(i) + ": " + in_a + " vs " + in_b;
  }
  if (a.pre.rules != b.pre.rules) {
    return "pre-tokeniser: " + quote_name(a.pre.name) + " vs " + quote_name(b.pre.name);
  }
  if (a.normalizer != b.normalizer) return "the normaliser";
  for (size_t i = 0; i < std::max(a.steps.size(), b.steps.size()); ++i) {
    const std::string in_a = i < a.steps.size() ? quote_name(a.steps[i]) : "none";
    const std::string in_b = i < b.steps.size() ? quote_name(b.steps[i]) : "none";
    if (i >= a.steps.size() || i >= b.steps.size() || a.steps[i] != b.steps[i]) {
      return in_a + " vs " + in_b;
    }
  }
  if (a.space_prefix != b.space_prefix) return "the space before the text";
  return "the order of merges and words";
}

}  // namespace

TokenizerFingerprint fingerprint_of(const Vocabulary& v) {
  Digest digest;
  digest.add("headrace tokenizer 1");
  digest.add_number(static_cast<uint64_t>(v.algorithm));
  for (size_t id = 0; id < v.size(); ++id) {
    if (!counts(v, id)) continue;
    digest.add_number((uint64_t{id} << 8) | static_cast<uint64_t>(v.kinds[id]));
    digest.add(v.pieces[id]);
    if (!v.scores.empty()) digest.add_float(v.scores[id]);
  }
  digest.add_number(v.merges.size());
  for (const MergeRule& rule : v.merges) {
    digest.add_number((uint64_t{static_cast<uint32_t>(rule.left)} << 32) |
                      static_cast<uint32_t>(rule.right));
  }
  digest.add_number(v.added.size());
  for (const AddedRule& rule : v.added) {
    digest.add_number(
        (rule.late ? uint64_t{1} << 63 : 0U) | (uint64_t{static_cast<uint32_t>(rule.id)} << 3) |
        (rule.strip_left ? 4U : 0U) | (rule.strip_right ? 2U : 0U) | (rule.single_word ? 1U : 0U));
  }
  digest.add_number(static_cast<uint64_t>(v.pre.rules));
  digest.add_number((v.ignore_merges ? 1U : 0U) | (v.space_prefix ? 2U : 0U));
  digest.add_number(static_cast<uint64_t>(v.normalizer));
  for (const std::string& step : v.steps) digest.add(step);
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
          ? text::first_difference(base_a->vocabulary(), base_b->vocabulary())
          : "fingerprint " + a.fingerprint().digest + " vs " + b.fingerprint().digest;
  return Error{ErrorCode::mismatch,
               std::string(what_a) + " and " + std::string(what_b) +
                   " have different tokenizers, first difference: " + difference,
               "", "use a " + std::string(what_b) + " made for the same vocabulary"};
}

}  // namespace headrace
