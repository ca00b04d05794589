// See wrap.h.
#include "text/chat_template/wrap.h"

#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

/// What text is cut at. Other white space counts as letters do, but is dropped around lines.
bool is_gap(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_letter(int32_t c) {
  return is_word(c) && !is_decimal(c);
}

/// A word may go on in front of dashes after one of these.
bool ends_word(int32_t c) {
  return is_word(c) || c == '!' || c == '"' || c == '\'' || c == '&' || c == '.' || c == ',' ||
         c == '?';
}

bool is_blank(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto c = decode_at(text, at);
    if (!is_space(c.value)) return false;
    at += c.length;
  }
  return true;
}

/// A part of the text that lines are made of. Cutting it moves `begin`.
struct Piece {
  size_t begin = 0, end = 0;
  size_t ink_end = 0;     ///< past the last character that is no white space
  int64_t num_chars = 0;  ///< code points in [begin, end)
  bool blank() const { return ink_end <= begin; }
};

/// Cuts text into gaps and words, and words after hyphens within them and around dashes.
class Pieces {
 public:
  Pieces(Budget& budget, std::string_view text, bool at_hyphens)
      : budget_(budget), text_(text), at_hyphens_(at_hyphens) {}

  /// False at the end.
  bool next(Piece& piece) {
    if (at_ == text_.size()) return false;
    budget_.step();
    piece_ = {at_, at_, at_, 0};
    if (is_gap(text_[at_])) {
      while (at_ < text_.size() && is_gap(text_[at_])) take();
    } else if (at_hyphens_ && starts_dash()) {
      while (at_ < text_.size() && text_[at_] == '-') take();
    } else {
      take_word();
    }
    piece_.end = at_;
    piece = piece_;
    return true;
  }

 private:
  void take() {
    const auto c = decode_at(text_, at_);
    at_ += c.length;
    ++piece_.num_chars;
    if (!is_space(c.value)) piece_.ink_end = at_;
    before_[0] = before_[1];
    before_[1] = before_[2];
    before_[2] = c.value;
  }

  void take_word() {
    do {
      take();
      if (!at_hyphens_ || at_ == text_.size() || text_[at_] != '-') continue;
      if (starts_dash()) return;
      if (is_inner_hyphen()) {
        take();
        return;
      }
    } while (at_ < text_.size() && !is_gap(text_[at_]));
  }

  /// Two or more hyphens from here on, between words.
  bool starts_dash() const {
    if (!ends_word(before_[2])) return false;
    size_t end = at_;
    while (end < text_.size() && text_[end] == '-') ++end;
    return end - at_ >= 2 && end < text_.size() && is_word(decode_at(text_, end).value);
  }

  /// The hyphen here stands after two letters (or one that has a hyphen and a letter before it) and
  /// before two (or one that has a hyphen and a letter after it).
  bool is_inner_hyphen() const {
    if (!is_letter(before_[2])) return false;
    if (!is_letter(before_[1]) && !(before_[1] == '-' && is_letter(before_[0]))) return false;
    size_t at = at_ + 1;
    const auto take_letter = [&] {
      if (at >= text_.size()) return false;
      const auto c = decode_at(text_, at);
      at += c.length;
      return is_letter(c.value);
    };
    if (!take_letter()) return false;
    if (at < text_.size() && text_[at] == '-') ++at;
    return take_letter();
  }

  Budget& budget_;
  std::string_view text_;
  bool at_hyphens_;
  size_t at_ = 0;
  Piece piece_;
  int32_t before_[3] = {' ', ' ', ' '};  // what was taken last, across pieces
};

/// Where to cut a word of which `room` code points fit.
size_t cut_in(std::string_view text, const Piece& piece, int64_t room, bool at_hyphens) {
  const auto word = text.substr(piece.begin, piece.end - piece.begin);
  const auto fitting = word.substr(0, byte_offset(word, static_cast<size_t>(room)));
  const size_t hyphen = at_hyphens ? fitting.rfind('-') : fitting.npos;
  if (hyphen != fitting.npos && fitting.substr(0, hyphen).find_first_not_of('-') != fitting.npos) {
    return piece.begin + hyphen + 1;
  }
  return piece.begin + fitting.size();
}

}  // namespace

void wrap_paragraph(Budget& budget, std::string_view paragraph, const WrapOptions& options,
                    FunctionRef<void(size_t, size_t)> line) {
  budget.step_bytes(paragraph.size());
  Pieces pieces(budget, paragraph, options.split_at_hyphens);
  Piece piece;
  bool any_line = false;
  bool more = pieces.next(piece);
  while (more) {
    if (any_line && piece.blank() && !(more = pieces.next(piece))) break;
    const size_t begin = piece.begin;
    size_t end = begin;
    Piece last;  // of this line
    int64_t room = options.width;
    const auto take_piece = [&] {
      last = piece;
      end = piece.end;
      room -= piece.num_chars;
      more = pieces.next(piece);
    };
    while (more && piece.num_chars <= room) take_piece();
    if (more && piece.num_chars > options.width) {
      if (options.break_long_words) {
        budget.step();
        const size_t cut = cut_in(paragraph, piece, room, options.cut_at_hyphens);
        const auto head = paragraph.substr(piece.begin, cut - piece.begin);
        last = {piece.begin, cut, is_blank(head) ? piece.begin : cut, 0};
        end = cut;
        piece.num_chars -= static_cast<int64_t>(count_code_points(head));
        piece.begin = cut;
      } else if (end == begin) {
        take_piece();
      }
    }
    // Where nothing of a long word fitted, what stands before it stays, a gap too: so does Python.
    if (last.blank()) end = last.begin;
    if (end > begin) {
      line(begin, end);
      any_line = true;
    }
  }
}

}  // namespace headrace::jinja
