// Parts of a Vocabulary that do not depend on the file's format; see vocabulary.h.
#include "text/vocabulary.h"

#include <algorithm>

#include "checkpoint/quote_name.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

// Spellings that end a turn or a text in published chat models.
constexpr std::string_view kEndSpellings[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<EOT>",
    "<|eot|>",
    "<|end_of_text|>",
    "<|return|>",
    "<|call|>",
    "<turn|>",
    "</s>",
    "<|EOT|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_turn|>",
    "<|endofturn|>",
    "<|assistant_end|>",
    "<｜end▁of▁sentence｜>",
};

std::string bytes_of(const Vocabulary& vocabulary, size_t id) {
  const std::string_view piece = vocabulary.pieces[id];
  if (vocabulary.is_padding(static_cast<TokenId>(id))) return "";
  switch (vocabulary.kinds[id]) {
    case TokenKind::control:
    case TokenKind::unknown:
      return std::string(piece);
    case TokenKind::byte:
      if (const int byte = byte_of_piece(piece); byte >= 0) {
        return std::string(1, static_cast<char>(byte));
      }
      return std::string(piece);
    case TokenKind::user_defined:
      // Their spelling is plain text; only SentencePiece marks spaces in it.
      return vocabulary.algorithm == Algorithm::sentencepiece_bpe ? unmark_spaces(piece)
                                                                  : std::string(piece);
    case TokenKind::normal:
    case TokenKind::unused:
      break;
  }
  if (vocabulary.algorithm == Algorithm::byte_level_bpe) {
    return ByteAlphabet::get().decode(piece).value_or(std::string(piece));
  }
  return unmark_spaces(piece);
}

}  // namespace

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  int value = 0;
  for (const char c : piece.substr(3, 2)) {
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

std::string unmark_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0;;) {
    const size_t mark = text.find(kSpaceMark, at);
    out.append(text.substr(at, mark == text.npos ? mark : mark - at));
    if (mark == text.npos) return out;
    out.push_back(' ');
    at = mark + kSpaceMark.size();
  }
}

Result<void> index_pieces(Vocabulary& vocabulary, std::string_view key) {
  vocabulary.index = StringIndex(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.pieces[id];
    if (piece.empty() || vocabulary.index.insert(vocabulary.pieces, static_cast<uint32_t>(id))) {
      continue;
    }
    if (vocabulary.kinds[id] == TokenKind::unused) continue;
    const int32_t first = vocabulary.index.find(vocabulary.pieces, piece);
    return Error{ErrorCode::corrupt_data,
                 "tokens " + std::to_string(first) + " and " + std::to_string(id) +
                     " have the same spelling " + quote_name(piece),
                 std::string(key), ""};
  }
  return {};
}

void spell_bytes(Vocabulary& vocabulary) {
  vocabulary.bytes.reserve(vocabulary.size(), vocabulary.pieces.num_bytes());
  for (size_t id = 0; id < vocabulary.size(); ++id) vocabulary.bytes.add(bytes_of(vocabulary, id));
}

void find_end_tokens(Vocabulary& vocabulary, const std::vector<TokenId>& more) {
  std::vector<TokenId>& ends = vocabulary.special.end_of_generation;
  ends = more;
  if (vocabulary.special.eos >= 0) ends.push_back(vocabulary.special.eos);
  for (const std::string_view spelling : kEndSpellings) {
    const TokenId id = vocabulary.index.find(vocabulary.pieces, spelling);
    if (id >= 0 && vocabulary.kinds[static_cast<size_t>(id)] == TokenKind::control) {
      ends.push_back(id);
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

bool is_padding_row(std::string_view piece, size_t id) {
  return piece.starts_with("[PAD") && piece == "[PAD" + std::to_string(id) + "]";
}

bool Vocabulary::is_padding(TokenId id) const {
  const auto at = static_cast<size_t>(id);
  return kinds[at] == TokenKind::unused && is_padding_row(pieces[at], at);
}

void pad_vocabulary(Vocabulary& vocabulary, int64_t size) {
  if (size > static_cast<int64_t>(kMaxVocabularySize)) return;
  for (size_t id = vocabulary.size(); static_cast<int64_t>(id) < size; ++id) {
    vocabulary.pieces.add("[PAD" + std::to_string(id) + "]");
    vocabulary.kinds.push_back(TokenKind::unused);
    if (!vocabulary.scores.empty()) vocabulary.scores.push_back(0);
  }
}

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
    bytes_[code] = static_cast<int16_t>(byte);
    append_utf8(spelling_[static_cast<size_t>(byte)], code);
  }
}

const ByteAlphabet& ByteAlphabet::get() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

std::optional<std::string> ByteAlphabet::decode(std::string_view piece) const {
  std::string out;
  const char* const end = piece.data() + piece.size();
  for (const char* p = piece.data(); p < end;) {
    const Decoded c = decode_utf8(p, end);
    const int value = c.valid ? byte(c.code) : -1;
    if (value < 0) return std::nullopt;
    out.push_back(static_cast<char>(value));
    p += c.size;
  }
  return out;
}

}  // namespace headrace::text
