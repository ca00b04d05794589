// See pre_tokenizers.h.
#include "text/hf/pre_tokenizers.h"

#include <algorithm>
#include <utility>

#include "checkpoint/quote_name.h"
#include "text/hf/normalizers.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace headrace::text {
namespace {

constexpr const char* kBehaviorNames[] = {"removed", "isolated", "merged with previous",
                                          "merged with next", "contiguous"};

/// Turns matches, which come from left to right, into pieces.
class PieceMaker {
 public:
  PieceMaker(std::string_view text, bool first, SplitBehavior behavior, bool invert, PieceSink sink)
      : text_(text), first_(first), behavior_(behavior), invert_(invert), sink_(sink) {}

  void match(size_t begin, size_t end) {
    if (begin > at_) add(at_, begin, invert_);
    add(begin, end, !invert_);
    at_ = end;
  }
  void finish() {
    if (at_ < text_.size()) add(at_, text_.size(), invert_);
    flush();
  }

 private:
  // Pieces cover the text without gaps; `begin_` to `end_` is not given out yet.
  void add(size_t begin, size_t end, bool is_match) {
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!is_match) give(begin, end);
        return;
      case SplitBehavior::isolated:
        give(begin, end);
        return;
      case SplitBehavior::contiguous:
        if (is_match == was_match_ && holds_) {
          end_ = end;
        } else {
          hold(begin, end);
        }
        break;
      case SplitBehavior::merged_with_previous:
        if (is_match && !was_match_ && holds_) {
          end_ = end;
        } else {
          hold(begin, end);
        }
        break;
      case SplitBehavior::merged_with_next:
        // A match joins what follows, unless that is a match.
        if (was_match_ && !is_match && holds_) {
          end_ = end;
        } else {
          hold(begin, end);
        }
        break;
    }
    was_match_ = is_match;
  }
  void hold(size_t begin, size_t end) {
    flush();
    begin_ = begin;
    end_ = end;
    holds_ = true;
  }
  void flush() {
    if (holds_) give(begin_, end_);
    holds_ = false;
  }
  void give(size_t begin, size_t end) {
    if (begin < end) sink_(text_.substr(begin, end - begin), first_ && begin == 0);
  }

  std::string_view text_;
  bool first_;
  SplitBehavior behavior_;
  bool invert_;
  PieceSink sink_;
  size_t at_ = 0, begin_ = 0, end_ = 0;
  bool holds_ = false, was_match_ = false;
};

template <class IsMatch>
void cut_at_characters(std::string_view text, bool first, SplitBehavior behavior,
                       IsMatch&& is_match, PieceSink sink) {
  PieceMaker maker(text, first, behavior, false, sink);
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Decoded c = decode_utf8(p, end);
    const auto at = static_cast<size_t>(p - text.data());
    if (is_match(c.code)) maker.match(at, at + c.size);
    p += c.size;
  }
  maker.finish();
}

// All of ASCII that is neither letter, digit, space nor control counts, "$" and "^" too.
bool is_punctuation_mark(char32_t c) {
  const uint8_t bits = CharTable::get().of(c);
  return (bits & (c < 0x80 ? kPunct | kSymbol : kPunct)) != 0;
}

bool is_numeric(char32_t c) {
  return (CharTable::get().of(c) & kNumber) != 0;
}

class ByteLevelCutter final : public Cutter {
 public:
  ByteLevelCutter(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void cut(std::string_view text, bool first, std::string& buffer, PieceSink sink) const override {
    std::string spaced;
    if (add_prefix_space_ && !text.starts_with(' ')) {
      spaced.reserve(text.size() + 1);
      spaced.append(1, ' ').append(text);
      text = spaced;
    }
    const auto give = [&](std::string_view word) {
      buffer.clear();
      append_byte_level(word, buffer);
      sink(buffer, std::exchange(first, false));
    };
    if (use_regex_) {
      pretokenize(PreTokenizer::gpt2, text, give);
    } else {
      give(text);
    }
  }
  std::string describe() const override {
    return std::string("ByteLevel") + (add_prefix_space_ ? " prefix" : "") +
           (use_regex_ ? " words" : "");
  }

 private:
  bool add_prefix_space_, use_regex_;
};

class WhitespaceCutter final : public Cutter {
 public:
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    enum class Kind { space, word, other };
    Kind now = Kind::space;
    size_t begin = 0, at = 0;
    const char* const end = text.data() + text.size();
    const auto give = [&] {
      if (now != Kind::space) sink(text.substr(begin, at - begin), first && begin == 0);
    };
    while (at < text.size()) {
      const Decoded c = decode_utf8(text.data() + at, end);
      const Kind kind = c.valid && is_word_character(c.code) ? Kind::word
                        : is_space(c.code)                   ? Kind::space
                                                             : Kind::other;
      if (kind != now) {
        give();
        begin = at;
        now = kind;
      }
      at += c.size;
    }
    give();
  }
  std::string describe() const override { return "Whitespace"; }
};

class WhitespaceSplitCutter final : public Cutter {
 public:
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    cut_at_characters(text, first, SplitBehavior::removed, is_space, sink);
  }
  std::string describe() const override { return "WhitespaceSplit"; }
};

class BertCutter final : public Cutter {
 public:
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    size_t begin = 0, at = 0;
    const char* const end = text.data() + text.size();
    const auto give = [&](size_t from, size_t to) {
      if (from < to) sink(text.substr(from, to - from), first && from == 0);
    };
    while (at < text.size()) {
      const Decoded c = decode_utf8(text.data() + at, end);
      const bool space = is_space(c.code);
      if (space || is_punctuation_mark(c.code)) {
        give(begin, at);
        begin = at + c.size;
        if (!space) give(at, begin);
      }
      at += c.size;
    }
    give(begin, at);
  }
  std::string describe() const override { return "BertPreTokenizer"; }
};

class MetaspaceCutter final : public Cutter {
 public:
  MetaspaceCutter(std::string replacement, PrependScheme scheme, bool split)
      : mark_(std::move(replacement)), scheme_(scheme), split_(split) {}

  void cut(std::string_view text, bool first, std::string& buffer, PieceSink sink) const override {
    buffer.clear();
    buffer.reserve(text.size() + text.size() / 2 + mark_.size());
    const bool prepend =
        scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && first);
    if (prepend && !text.starts_with(' ') && !text.starts_with(mark_)) buffer += mark_;
    for (size_t n; (n = text.find(' ')) != text.npos; text.remove_prefix(n + 1)) {
      buffer.append(text.substr(0, n)).append(mark_);
    }
    buffer += text;
    const std::string_view all = buffer;
    if (!split_) return sink(all, first);
    // Every mark begins a piece.
    for (size_t begin = 0; begin < all.size();) {
      const size_t from = all.substr(begin).starts_with(mark_) ? begin + mark_.size() : begin;
      const size_t end = std::min(all.find(mark_, from), all.size());
      sink(all.substr(begin, end - begin), first && begin == 0);
      begin = end;
    }
  }

  std::string describe() const override {
    constexpr const char* kSchemes[] = {"first", "never", "always"};
    return "Metaspace " + quote_name(mark_) + " " + kSchemes[static_cast<size_t>(scheme_)] +
           (split_ ? " split" : "");
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

class PunctuationCutter final : public Cutter {
 public:
  explicit PunctuationCutter(SplitBehavior behavior) : behavior_(behavior) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    cut_at_characters(text, first, behavior_, is_punctuation_mark, sink);
  }
  std::string describe() const override {
    return std::string("Punctuation ") + kBehaviorNames[static_cast<size_t>(behavior_)];
  }

 private:
  SplitBehavior behavior_;
};

class DigitsCutter final : public Cutter {
 public:
  explicit DigitsCutter(bool individual) : individual_(individual) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    cut_at_characters(text, first,
                      individual_ ? SplitBehavior::isolated : SplitBehavior::contiguous, is_numeric,
                      sink);
  }
  std::string describe() const override {
    return std::string("Digits") + (individual_ ? " one by one" : "");
  }

 private:
  bool individual_;
};

class SplitTextCutter final : public Cutter {
 public:
  SplitTextCutter(std::string text, SplitBehavior behavior, bool invert)
      : text_(std::move(text)), behavior_(behavior), invert_(invert) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    PieceMaker maker(text, first, behavior_, invert_, sink);
    if (!text_.empty()) {
      for (size_t at = 0; (at = text.find(text_, at)) != text.npos; at += text_.size()) {
        maker.match(at, at + text_.size());
      }
    }
    maker.finish();
  }
  std::string describe() const override {
    return "Split " + quote_name(text_) + " " + kBehaviorNames[static_cast<size_t>(behavior_)] +
           (invert_ ? " inverted" : "");
  }

 private:
  std::string text_;
  SplitBehavior behavior_;
  bool invert_;
};

class SplitRegexCutter final : public Cutter {
 public:
  SplitRegexCutter(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    PieceMaker maker(text, first, behavior_, invert_, sink);
    regex_.each_match(text, [&](size_t begin, size_t end) { maker.match(begin, end); });
    maker.finish();
  }
  std::string describe() const override {
    return "Split /" + regex_.pattern() + "/ " + kBehaviorNames[static_cast<size_t>(behavior_)] +
           (invert_ ? " inverted" : "");
  }

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

class SplitKnownCutter final : public Cutter {
 public:
  explicit SplitKnownCutter(const PreTokenizerName& rules) : rules_(rules) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    pretokenize(rules_.rules, text,
                [&](std::string_view word) { sink(word, std::exchange(first, false)); });
  }
  std::string describe() const override { return "Split as " + std::string(rules_.name); }

 private:
  PreTokenizerName rules_;
};

class FixedLengthCutter final : public Cutter {
 public:
  explicit FixedLengthCutter(size_t length) : length_(length) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    const char* const end = text.data() + text.size();
    size_t begin = 0, at = 0, count = 0;
    while (at < text.size()) {
      at += decode_utf8(text.data() + at, end).size;
      if (++count < length_ && at < text.size()) continue;
      sink(text.substr(begin, at - begin), first && begin == 0);
      begin = at;
      count = 0;
    }
  }
  std::string describe() const override { return "FixedLength " + std::to_string(length_); }

 private:
  size_t length_;
};

// The scripts of the tokenizers library's table.
constexpr const char* kScripts[] = {"Adlam",
                                    "Ahom",
                                    "Anatolian_Hieroglyphs",
                                    "Arabic",
                                    "Armenian",
                                    "Avestan",
                                    "Balinese",
                                    "Bamum",
                                    "Bassa_Vah",
                                    "Batak",
                                    "Bengali",
                                    "Bhaiksuki",
                                    "Bopomofo",
                                    "Brahmi",
                                    "Braille",
                                    "Buginese",
                                    "Buhid",
                                    "Canadian_Aboriginal",
                                    "Carian",
                                    "Caucasian_Albanian",
                                    "Chakma",
                                    "Cham",
                                    "Cherokee",
                                    "Coptic",
                                    "Cuneiform",
                                    "Cypriot",
                                    "Cyrillic",
                                    "Deseret",
                                    "Devanagari",
                                    "Duployan",
                                    "Egyptian_Hieroglyphs",
                                    "Elbasan",
                                    "Ethiopic",
                                    "Georgian",
                                    "Glagolitic",
                                    "Gothic",
                                    "Grantha",
                                    "Greek",
                                    "Gujarati",
                                    "Gurmukhi",
                                    "Hangul",
                                    "Hanunoo",
                                    "Hatran",
                                    "Hebrew",
                                    "Imperial_Aramaic",
                                    "Inherited",
                                    "Inscriptional_Pahlavi",
                                    "Inscriptional_Parthian",
                                    "Javanese",
                                    "Kaithi",
                                    "Kannada",
                                    "Kayah_Li",
                                    "Kharoshthi",
                                    "Khmer",
                                    "Khojki",
                                    "Khudawadi",
                                    "Lao",
                                    "Latin",
                                    "Lepcha",
                                    "Limbu",
                                    "Linear_A",
                                    "Linear_B",
                                    "Lisu",
                                    "Lycian",
                                    "Lydian",
                                    "Mahajani",
                                    "Malayalam",
                                    "Mandaic",
                                    "Manichaean",
                                    "Marchen",
                                    "Meetei_Mayek",
                                    "Mende_Kikakui",
                                    "Meroitic_Cursive",
                                    "Meroitic_Hieroglyphs",
                                    "Miao",
                                    "Modi",
                                    "Mongolian",
                                    "Mro",
                                    "Multani",
                                    "Myanmar",
                                    "Nabataean",
                                    "New_Tai_Lue",
                                    "Newa",
                                    "Nko",
                                    "Ogham",
                                    "Ol_Chiki",
                                    "Old_Hungarian",
                                    "Old_Italic",
                                    "Old_North_Arabian",
                                    "Old_Permic",
                                    "Old_Persian",
                                    "Old_South_Arabian",
                                    "Old_Turkic",
                                    "Oriya",
                                    "Osage",
                                    "Osmanya",
                                    "Pahawh_Hmong",
                                    "Palmyrene",
                                    "Pau_Cin_Hau",
                                    "Phags_Pa",
                                    "Phoenician",
                                    "Psalter_Pahlavi",
                                    "Rejang",
                                    "Runic",
                                    "Samaritan",
                                    "Saurashtra",
                                    "Sharada",
                                    "Shavian",
                                    "Siddham",
                                    "SignWriting",
                                    "Sinhala",
                                    "Sora_Sompeng",
                                    "Sundanese",
                                    "Syloti_Nagri",
                                    "Syriac",
                                    "Tagalog",
                                    "Tagbanwa",
                                    "Tai_Le",
                                    "Tai_Tham",
                                    "Tai_Viet",
                                    "Takri",
                                    "Tamil",
                                    "Tangut",
                                    "Telugu",
                                    "Thaana",
                                    "Thai",
                                    "Tibetan",
                                    "Tifinagh",
                                    "Tirhuta",
                                    "Ugaritic",
                                    "Vai",
                                    "Warang_Citi",
                                    "Yi"};

// Text is cut where a script follows another. Spaces, and characters of no script, go on with what
// is before them; those at the very beginning are left out, as in the library.
class UnicodeScriptsCutter final : public Cutter {
 public:
  explicit UnicodeScriptsCutter(Regex runs) : runs_(std::move(runs)) {}
  void cut(std::string_view text, bool first, std::string&, PieceSink sink) const override {
    size_t begin = text.npos;
    runs_.each_match(text, [&](size_t from, size_t) {
      if (begin != text.npos) sink(text.substr(begin, from - begin), first && begin == 0);
      begin = from;
    });
    if (begin != text.npos) sink(text.substr(begin), first && begin == 0);
  }
  std::string describe() const override { return "UnicodeScripts"; }

 private:
  Regex runs_;
};

// One alternative a script: its characters, and others of no script between them.
std::string script_runs() {
  constexpr std::string_view kBetween = "[\\x{20}\\p{Cn}]";
  const auto run = [&](const std::string& one) {
    return one + "(?:" + one + "|" + std::string(kBetween) + ")*+";
  };
  std::string pattern = run("[\\p{sc:Han}\\p{sc:Hiragana}\\p{sc:Katakana}\\x{30FC}]") + "|" +
                        run("(?![\\x{20}\\x{30FC}])\\p{sc:Common}");
  for (const char* script : kScripts) {
    pattern += "|" + run("\\p{sc:" + std::string(script) + "}");
  }
  return pattern;
}

}  // namespace

CutterPtr make_byte_level(bool add_prefix_space, bool use_regex) {
  return std::make_unique<ByteLevelCutter>(add_prefix_space, use_regex);
}
CutterPtr make_whitespace() {
  return std::make_unique<WhitespaceCutter>();
}
CutterPtr make_whitespace_split() {
  return std::make_unique<WhitespaceSplitCutter>();
}
CutterPtr make_bert_pre_tokenizer() {
  return std::make_unique<BertCutter>();
}
CutterPtr make_metaspace(std::string replacement, PrependScheme scheme, bool split) {
  return std::make_unique<MetaspaceCutter>(std::move(replacement), scheme, split);
}
CutterPtr make_punctuation(SplitBehavior behavior) {
  return std::make_unique<PunctuationCutter>(behavior);
}
CutterPtr make_digits(bool individual) {
  return std::make_unique<DigitsCutter>(individual);
}
CutterPtr make_split_text(std::string text, SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitTextCutter>(std::move(text), behavior, invert);
}
CutterPtr make_split_regex(Regex regex, SplitBehavior behavior, bool invert) {
  return std::make_unique<SplitRegexCutter>(std::move(regex), behavior, invert);
}
CutterPtr make_split_known(const PreTokenizerName& rules) {
  return std::make_unique<SplitKnownCutter>(rules);
}
CutterPtr make_fixed_length(size_t length) {
  return std::make_unique<FixedLengthCutter>(length);
}
Result<CutterPtr> make_unicode_scripts() {
  HEADRACE_ASSIGN(Regex runs, Regex::compile(script_runs()));
  return CutterPtr(std::make_unique<UnicodeScriptsCutter>(std::move(runs)));
}

}  // namespace headrace::text
