// What a tokenizer file says, whichever format it has. Owns pieces, kinds, scores, merges and
// special tokens. Must not know how text is cut.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "text/pretokenize.h"
#include "text/string_table.h"
#include "text/tokenizer.h"

namespace headrace::text {

/// How text becomes tokens.
enum class Algorithm : uint8_t {
  byte_level_bpe,
  sentencepiece_bpe,
  wordpiece,
  pipeline  ///< by `steps`
};

enum class Normalizer : uint8_t { none, nfc };

/// Two tokens that join to a third; the rule's place in its list is its rank.
struct MergeRule {
  TokenId left, right, joined;
};

/// How a token that is matched in the text as a whole treats what stands beside it.
struct AddedRule {
  TokenId id = -1;
  bool strip_left = false;   ///< takes the white space before it
  bool strip_right = false;  ///< takes the white space after it
  bool single_word = false;  ///< only where no letter, number or '_' touches it
  bool late = false;         ///< looked for in the text between those that are not
  std::string spelled;       ///< of a late one: its normal form, where that is another; else empty
};

/// Tokens that a file may have.
inline constexpr size_t kMaxVocabularySize = size_t{1} << 24;

struct Vocabulary {
  Algorithm algorithm = Algorithm::byte_level_bpe;
  StringPool pieces;  ///< as the file spells them
  StringPool bytes;   ///< what they stand for in text
  StringIndex index;  ///< of `pieces`; empty ones are not in it
  std::vector<TokenKind> kinds;
  std::vector<float> scores;      ///< SentencePiece only
  std::vector<MergeRule> merges;  ///< byte-level BPE only
  std::vector<AddedRule> added;   ///< only those with a rule that is not the default
  PreTokenizerName pre{"none", PreTokenizer::none, false, false, false};
  Normalizer normalizer = Normalizer::none;
  bool ignore_merges = false;
  bool space_prefix = false;  ///< SentencePiece: a space is put before the text
  bool fuse_unknown = true;   ///< SentencePiece: unknown neighbours become one token
  SpecialTokens special;
  std::vector<std::string> steps;  ///< of a pipeline: what each does, for the guard

  size_t size() const { return pieces.size(); }
  bool is_id(int64_t id) const { return id >= 0 && static_cast<uint64_t>(id) < size(); }
  /// A row without a token, which only brings the vocabulary to a model's size.
  bool is_padding(TokenId id) const;
  /// Control and unknown tokens: what decoding leaves out on request.
  bool is_hidden(TokenId id) const {
    const TokenKind k = kinds[static_cast<size_t>(id)];
    return k == TokenKind::control || k == TokenKind::unknown;
  }
};

/// Builds `index` from `pieces`. Error (corrupt_data) on two equal pieces in use; `key` names the
/// list in the message.
Result<void> index_pieces(Vocabulary& vocabulary, std::string_view key);

/// Builds `bytes` from `pieces`, `kinds` and `algorithm`.
void spell_bytes(Vocabulary& vocabulary);

/// Fills `special.end_of_generation`: eos, the given ids, and control tokens with a well-known
/// spelling of an end of turn. Sorted, without repeats.
void find_end_tokens(Vocabulary& vocabulary, const std::vector<TokenId>& more);

/// True for the rows that converters add to reach a round size: "[PAD151646]" at that very id.
bool is_padding_row(std::string_view piece, size_t id);

/// Adds such rows, unused and without text, until there are `size`; not more than
/// kMaxVocabularySize, and none where there are as many already. Before `bytes` is filled.
void pad_vocabulary(Vocabulary& vocabulary, int64_t size);

/// The byte that each character of the byte-level alphabet stands for: the printable bytes of
/// Latin-1 stand for themselves, the others for U+0100 and up (GPT-2).
class ByteAlphabet {
 public:
  static const ByteAlphabet& get();
  /// The UTF-8 spelling of a byte.
  const std::string& spelling(uint8_t byte) const { return spelling_[byte]; }
  /// The byte a character stands for, or -1.
  int byte(char32_t code) const { return code < bytes_.size() ? bytes_[code] : -1; }
  /// The bytes of a piece; nothing if it has a character outside the alphabet.
  std::optional<std::string> decode(std::string_view piece) const;

 private:
  ByteAlphabet();
  std::array<std::string, 256> spelling_;
  std::array<int16_t, 0x180> bytes_;
};

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

/// The byte that SentencePiece's spelling "<0x0A>" stands for, or -1.
int byte_of_piece(std::string_view piece);

/// Replaces every U+2581 by a space.
std::string unmark_spaces(std::string_view text);

/// From `tokenizer.ggml.*`; see make_tokenizer. Of a Unigram model (Algorithm::pipeline) `bytes` is
/// not filled.
Result<Vocabulary> read_gguf_vocabulary(const Metadata& metadata, const TokenizerOptions& options);

}  // namespace headrace::text
