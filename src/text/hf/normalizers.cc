// See normalizers.h.
#include "text/hf/normalizers.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "checkpoint/quote_name.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace headrace::text {
namespace {

// Calls `each(code, bytes, valid)` for every character.
template <class Each>
void each_character(std::string_view text, Each&& each) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Decoded c = decode_utf8(p, end);
    each(c.code, std::string_view(p, c.size), c.valid);
    p += c.size;
  }
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

class NormalFormStep final : public TextStep {
 public:
  explicit NormalFormStep(NormalForm form) : form_(form) {}
  void apply(std::string& text) const override {
    if (is_ascii(text) || (form_ == NormalForm::c && surely_nfc(text))) return;
    text = to_normal_form(text, form_ == NormalForm::kc || form_ == NormalForm::kd,
                          form_ == NormalForm::c || form_ == NormalForm::kc);
  }
  std::string describe() const override {
    constexpr const char* kNames[] = {"NFC", "NFD", "NFKC", "NFKD"};
    return kNames[static_cast<size_t>(form_)];
  }

 private:
  NormalForm form_;
};

void lower_case(std::string& text) {
  if (is_ascii(text)) {
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    }
    return;
  }
  std::string out;
  out.reserve(text.size() + 8);
  each_character(text, [&](char32_t code, std::string_view bytes, bool valid) {
    if (!valid) {
      out += bytes;
    } else if (code == 0x130) {  // the one letter whose lower case is two characters
      out += "i\xCC\x87";
    } else {
      append_utf8(out, to_lower(code));
    }
  });
  text = std::move(out);
}

class LowercaseStep final : public TextStep {
 public:
  void apply(std::string& text) const override { lower_case(text); }
  std::string describe() const override { return "Lowercase"; }
};

class StripStep final : public TextStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text) const override {
    size_t begin = text.size(), end = 0, at = 0;
    each_character(text, [&](char32_t code, std::string_view bytes, bool) {
      if (!is_space(code)) {
        begin = std::min(begin, at);
        end = at + bytes.size();
      }
      at += bytes.size();
    });
    if (right_) text.resize(end);
    if (left_) text.erase(0, std::min(begin, text.size()));
  }
  std::string describe() const override {
    return std::string("Strip") + (left_ ? " left" : "") + (right_ ? " right" : "");
  }

 private:
  bool left_, right_;
};

class StripAccentsStep final : public TextStep {
 public:
  void apply(std::string& text) const override {
    if (is_ascii(text)) return;
    std::string out;
    out.reserve(text.size());
    each_character(text, [&](char32_t code, std::string_view bytes, bool valid) {
      if (!valid || (CharTable::get().of(code) & kMark) == 0) out += bytes;
    });
    text = std::move(out);
  }
  std::string describe() const override { return "StripAccents"; }
};

class ReplaceTextStep final : public TextStep {
 public:
  ReplaceTextStep(std::string text, std::string content)
      : text_(std::move(text)), content_(std::move(content)) {}
  void apply(std::string& text) const override {
    if (text_.empty()) return;
    size_t next = text.find(text_);
    if (next == text.npos) return;
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    size_t at = 0;
    for (; next != text.npos; next = text.find(text_, at)) {
      out.append(text, at, next - at);
      out += content_;
      at = next + text_.size();
    }
    out.append(text, at, text.npos);
    text = std::move(out);
  }
  std::string describe() const override {
    return "Replace " + quote_name(text_) + " by " + quote_name(content_);
  }

 private:
  std::string text_, content_;
};

class ReplaceRegexStep final : public TextStep {
 public:
  ReplaceRegexStep(Regex regex, std::string content)
      : regex_(std::move(regex)), content_(std::move(content)) {}
  void apply(std::string& text) const override {
    std::string out;
    size_t at = 0;
    regex_.each_match(text, [&](size_t begin, size_t end) {
      out.append(text, at, begin - at);
      out += content_;
      at = end;
    });
    out.append(text, at, text.npos);
    text = std::move(out);
  }
  std::string describe() const override {
    return "Replace /" + regex_.pattern() + "/ by " + quote_name(content_);
  }

 private:
  Regex regex_;
  std::string content_;
};

class PrependStep final : public TextStep {
 public:
  explicit PrependStep(std::string text) : text_(std::move(text)) {}
  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, text_);
  }
  std::string describe() const override { return "Prepend " + quote_name(text_); }

 private:
  std::string text_;
};

// Written without spaces between words: every character is a word. The blocks BERT names.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// Of the categories C* those with characters: what is not assigned stays.
bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return is_other(c) && utf8proc_category(static_cast<utf8proc_int32_t>(c)) != UTF8PROC_CATEGORY_CN;
}

class BertStep final : public TextStep {
 public:
  explicit BertStep(const BertRules& rules) : rules_(rules) {}

  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 8);
    std::vector<char32_t> parts;
    each_character(text, [&](char32_t code, std::string_view bytes, bool valid) {
      if (rules_.clean_text) {
        if (code == 0 || code == kReplacement || is_control(code)) return;
        if (is_space(code)) code = ' ';
      }
      if (code < 0x80 || !valid) {
        if (!valid) {
          out += bytes;
        } else {
          out +=
              static_cast<char>(rules_.lowercase && code >= 'A' && code <= 'Z' ? code + 32 : code);
        }
        return;
      }
      const bool chinese = rules_.handle_chinese_chars && is_chinese(code);
      if (chinese) out += ' ';
      append(code, parts, out);
      if (chinese) out += ' ';
    });
    text = std::move(out);
  }

  std::string describe() const override {
    return std::string("BertNormalizer") + (rules_.clean_text ? " clean" : "") +
           (rules_.handle_chinese_chars ? " chinese" : "") +
           (rules_.strip_accents ? " accents" : "") + (rules_.lowercase ? " lower" : "");
  }

 private:
  void append(char32_t code, std::vector<char32_t>& parts, std::string& out) const {
    parts.clear();
    if (rules_.strip_accents) {
      append_decomposed(parts, code);
    } else {
      parts.push_back(code);
    }
    for (const char32_t part : parts) {
      if (rules_.strip_accents && is_nonspacing_mark(part)) continue;
      if (!rules_.lowercase) {
        append_utf8(out, part);
      } else if (part == 0x130) {
        out += "i\xCC\x87";
      } else {
        append_utf8(out, to_lower(part));
      }
    }
  }

  BertRules rules_;
};

class NmtStep final : public TextStep {
 public:
  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    each_character(text, [&](char32_t c, std::string_view bytes, bool valid) {
      if (!valid) {
        out += bytes;
      } else if (is_dropped(c)) {
        return;
      } else if (is_blank(c)) {
        out += ' ';
      } else {
        out += bytes;
      }
    });
    text = std::move(out);
  }
  std::string describe() const override { return "Nmt"; }

 private:
  static bool is_dropped(char32_t c) {
    return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  }
  static bool is_blank(char32_t c) {
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
  }
};

class PrecompiledStep final : public TextStep {
 public:
  explicit PrecompiledStep(Charsmap charsmap) : charsmap_(std::move(charsmap)) {}

  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    const std::string_view all = text;
    for (size_t at = 0; at < all.size();) {
      const size_t end = cluster_end(all, at);
      append_cluster(all.substr(at, end - at), out);
      at = end;
    }
    text = std::move(out);
  }

  std::string describe() const override { return "Precompiled " + charsmap_.blob(); }

 private:
  // A cluster that matters has fewer than 6 bytes, so that a longer one need not be seen whole:
  // its characters count alone.
  static size_t cluster_end(std::string_view text, size_t begin) {
    const char* const end = text.data() + text.size();
    Decoded c = decode_utf8(text.data() + begin, end);
    size_t at = begin + c.size;
    utf8proc_int32_t state = 0;
    while (at < text.size()) {
      const Decoded next = decode_utf8(text.data() + at, end);
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                           static_cast<utf8proc_int32_t>(next.code), &state) != 0) {
        break;
      }
      at += next.size;
      c = next;
    }
    return at;
  }

  void append_cluster(std::string_view cluster, std::string& out) const {
    if (cluster.size() < 6) {
      if (const auto found = charsmap_.shortest(cluster); found.size > 0) {
        out += found.by;
        return;
      }
    }
    each_character(cluster, [&](char32_t, std::string_view bytes, bool) {
      const auto found = charsmap_.shortest(bytes);
      out += found.size > 0 ? found.by : bytes;
    });
  }

  Charsmap charsmap_;
};

class ByteLevelStep final : public TextStep {
 public:
  void apply(std::string& text) const override {
    std::string out;
    append_byte_level(text, out);
    text = std::move(out);
  }
  std::string describe() const override { return "ByteLevel"; }
};

class SentencePieceStep final : public TextStep {
 public:
  explicit SentencePieceStep(SentencePieceRules rules) : rules_(std::move(rules)) {}

  void apply(std::string& text) const override {
    std::string plain;
    plain.reserve(text.size());
    const std::string_view all = text;
    const char* const end = all.data() + all.size();
    for (size_t at = 0; at < all.size();) {
      Charsmap::Found found;
      if (rules_.charsmap) found = rules_.charsmap->longest(all.substr(at));
      if (found.size == 0) {
        const Decoded c = decode_utf8(all.data() + at, end);
        plain.append(all, at, c.size);
        at += c.size;
      } else {
        plain += found.by;
        at += found.size;
      }
    }
    text.clear();
    mark_spaces(plain, text);
  }

  std::string describe() const override {
    return std::string("SentencePiece") + (rules_.add_dummy_prefix ? " prefix" : "") +
           (rules_.remove_extra_whitespaces ? " spaces" : "") +
           (rules_.charsmap ? " " + rules_.charsmap->blob() : std::string());
  }

 private:
  void mark_spaces(std::string_view plain, std::string& out) const {
    if (rules_.remove_extra_whitespaces) {
      while (!plain.empty() && plain.back() == ' ') plain.remove_suffix(1);
      while (!plain.empty() && plain.front() == ' ') plain.remove_prefix(1);
    }
    if (plain.empty()) return;
    if (rules_.add_dummy_prefix) out += kSpaceMark;
    bool after_space = rules_.remove_extra_whitespaces;
    for (const char c : plain) {
      if (c != ' ') {
        out += c;
      } else if (!rules_.remove_extra_whitespaces || !after_space) {
        out += kSpaceMark;
      }
      after_space = c == ' ';
    }
  }

  SentencePieceRules rules_;
};

}  // namespace

void append_byte_level(std::string_view text, std::string& out) {
  out.reserve(out.size() + text.size() + text.size() / 4);
  const ByteAlphabet& alphabet = ByteAlphabet::get();
  for (const char c : text) out += alphabet.spelling(static_cast<uint8_t>(c));
}

TextStepPtr make_normal_form(NormalForm form) {
  return std::make_unique<NormalFormStep>(form);
}
TextStepPtr make_lowercase() {
  return std::make_unique<LowercaseStep>();
}
TextStepPtr make_strip(bool left, bool right) {
  return std::make_unique<StripStep>(left, right);
}
TextStepPtr make_strip_accents() {
  return std::make_unique<StripAccentsStep>();
}
TextStepPtr make_replace_text(std::string text, std::string content) {
  return std::make_unique<ReplaceTextStep>(std::move(text), std::move(content));
}
TextStepPtr make_replace_regex(Regex regex, std::string content) {
  return std::make_unique<ReplaceRegexStep>(std::move(regex), std::move(content));
}
TextStepPtr make_prepend(std::string text) {
  return std::make_unique<PrependStep>(std::move(text));
}
TextStepPtr make_bert_normalizer(const BertRules& rules) {
  return std::make_unique<BertStep>(rules);
}
TextStepPtr make_nmt() {
  return std::make_unique<NmtStep>();
}
TextStepPtr make_precompiled(Charsmap charsmap) {
  return std::make_unique<PrecompiledStep>(std::move(charsmap));
}
TextStepPtr make_byte_level_normalizer() {
  return std::make_unique<ByteLevelStep>();
}
TextStepPtr make_sentencepiece_normalizer(SentencePieceRules rules) {
  return std::make_unique<SentencePieceStep>(std::move(rules));
}

}  // namespace headrace::text
