// See sentencepiece_form.h.
#include "text/hf/sentencepiece_form.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>

#include "checkpoint/quote_name.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

/// Bytes of a piece whose parts are looked for: each costs its square, and none is that long.
constexpr size_t kLongestJoined = 512;

/// How a pipeline says that unknown neighbours become one token.
constexpr std::string_view kJoinsUnknown = ", unknown neighbours are one";

bool is_ordinary(const Vocabulary& vocabulary, TokenId id) {
  return vocabulary.kinds[static_cast<size_t>(id)] == TokenKind::normal;
}

/// Takes one step of the pipeline; false where SentencePiece has no such step.
bool take_step(std::string_view step, bool& marks_spaces, SentencePieceForm& out) {
  const std::string mark = quote_name(kSpaceMark);
  const std::string metaspace = "pre-tokeniser: Metaspace " + mark;
  if (step == "normaliser: Prepend " + mark) {
    out.space_prefix = true;
  } else if (step == "normaliser: Replace " + quote_name(" ") + " by " + mark) {
    marks_spaces = true;
  } else if (step.starts_with(metaspace)) {
    // It puts no mark before one that is there.
    marks_spaces = true;
    out.space_prefix = !step.starts_with(metaspace + " never");
    out.is_same = false;
  } else if (step.starts_with("pre-tokeniser: Split " + quote_name(" "))) {
    return marks_spaces;  // there is no space left
  } else {
    return step == "pre-tokeniser: words" || step.starts_with("post-processor:") ||
           step.starts_with("decoder:");
  }
  return true;
}

bool take_steps(const Vocabulary& vocabulary, SentencePieceForm& out) {
  bool marks_spaces = false;
  if (vocabulary.steps.empty()) return false;
  const std::string& model = vocabulary.steps.front();
  const bool is_bpe = model.starts_with("model: BPE, unknown ") &&
                      (model.ends_with(", byte fall-back") ||
                       model.ends_with(", byte fall-back" + std::string(kJoinsUnknown)));
  if (!is_bpe) return false;
  for (size_t i = 1; i < vocabulary.steps.size(); ++i) {
    if (!take_step(vocabulary.steps[i], marks_spaces, out)) return false;
  }
  return marks_spaces;
}

bool is_less(const MergeRule& a, const MergeRule& b) {
  return std::tuple(a.left, a.right) < std::tuple(b.left, b.right);
}

/// The merges of ordinary tokens, those of one joined token in order of their parts. Others never
/// apply, since added tokens are matched as a whole before.
std::vector<MergeRule> ordinary_merges(const Vocabulary& vocabulary) {
  std::vector<MergeRule> out;
  std::ranges::copy_if(vocabulary.merges, std::back_inserter(out), [&](const MergeRule& rule) {
    return is_ordinary(vocabulary, rule.left) && is_ordinary(vocabulary, rule.right) &&
           is_ordinary(vocabulary, rule.joined);
  });
  for (auto begin = out.begin(); begin != out.end();) {
    const auto end = std::find_if(begin, out.end(),
                                  [&](const MergeRule& r) { return r.joined != begin->joined; });
    std::sort(begin, end, is_less);
    begin = end;
  }
  return out;
}

}  // namespace

std::vector<MergeRule> merges_of_scores(const Vocabulary& vocabulary) {
  std::vector<MergeRule> merges;
  const auto find = [&](std::string_view piece) {
    const TokenId id = vocabulary.index.find(vocabulary.pieces, piece);
    return id >= 0 && is_ordinary(vocabulary, id) ? id : TokenId{-1};
  };
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.pieces[id];
    if (!is_ordinary(vocabulary, static_cast<TokenId>(id)) || piece.size() > kLongestJoined) {
      continue;
    }
    for (size_t at = 1; at < piece.size(); ++at) {
      if ((static_cast<unsigned char>(piece[at]) & 0xC0) == 0x80) continue;  // within a character
      const TokenId left = find(piece.substr(0, at));
      const TokenId right = left < 0 ? TokenId{-1} : find(piece.substr(at));
      if (right >= 0) merges.push_back({left, right, static_cast<TokenId>(id)});
    }
  }
  const auto key = [&](const MergeRule& rule) {
    return std::tuple(-vocabulary.scores[static_cast<size_t>(rule.joined)], rule.joined, rule.left,
                      rule.right);
  };
  std::ranges::sort(merges, [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return merges;
}

bool has_character_tokens(const Vocabulary& vocabulary, std::string_view piece) {
  const char* const end = piece.data() + piece.size();
  for (const char* p = piece.data(); p < end;) {
    const size_t size = decode_utf8(p, end).size;
    const TokenId id = vocabulary.index.find(vocabulary.pieces, {p, size});
    if (id < 0 || !is_ordinary(vocabulary, id)) return false;
    p += size;
  }
  return true;
}

std::optional<SentencePieceForm> sentencepiece_form(const Vocabulary& vocabulary) {
  SentencePieceForm out;
  if (vocabulary.algorithm != Algorithm::pipeline || !take_steps(vocabulary, out)) {
    return std::nullopt;
  }
  Vocabulary scored;
  scored.pieces = vocabulary.pieces;
  scored.index = vocabulary.index;
  scored.merges = vocabulary.merges;
  scored.kinds = vocabulary.kinds;
  std::array<bool, 256> has_byte{};
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const int byte = byte_of_piece(vocabulary.pieces[id]);
    if (byte < 0 || !is_ordinary(vocabulary, static_cast<TokenId>(id))) continue;
    scored.kinds[id] = TokenKind::byte;
    has_byte[static_cast<size_t>(byte)] = true;
  }
  // Where a byte is missing there are unknown characters, of which SentencePiece joins neighbours.
  const bool has_all = std::ranges::find(has_byte, false) == has_byte.end();
  out.is_same = out.is_same && (has_all || vocabulary.steps.front().ends_with(kJoinsUnknown));
  if (const TokenId unknown = vocabulary.special.unk; unknown >= 0) {
    scored.kinds[static_cast<size_t>(unknown)] = TokenKind::unknown;
  }
  const std::vector<MergeRule> merges = ordinary_merges(scored);
  // By the place of a token's first merge; those without one come last.
  scored.scores.assign(vocabulary.size(), -static_cast<float>(vocabulary.size()));
  int64_t num_joined = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i > 0 && merges[i].joined == merges[i - 1].joined) continue;
    scored.scores[static_cast<size_t>(merges[i].joined)] = -static_cast<float>(++num_joined);
  }
  const bool are_those = std::ranges::equal(
      merges, merges_of_scores(scored), [](const MergeRule& a, const MergeRule& b) {
        return a.joined == b.joined && a.left == b.left && a.right == b.right;
      });
  if (!are_those) return std::nullopt;
  out.is_same =
      out.is_same && vocabulary.added.empty() && merges.size() == vocabulary.merges.size();
  out.kinds = std::move(scored.kinds);
  out.scores = std::move(scored.scores);
  return out;
}

}  // namespace headrace::text
