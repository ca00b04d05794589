// The dialect of tokenizer files in PCRE2's; see translate_pattern in regex.h. Oniguruma's syntax:
// its doc/RE; PCRE2's: pcre2pattern(3).
#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "text/hf/regex.h"

namespace headrace::text {
namespace {

constexpr int kMaxClassDepth = 32;

// Names of properties that are spelled otherwise, in lower case without '_', '-' and spaces.
constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
    {"alpha", "Alphabetic"},
    {"upper", "Uppercase"},
    {"lower", "Lowercase"},
    {"digit", "Nd"},
    {"space", "White_Space"},
    {"punct", "P"},
    {"cntrl", "Cc"},
};

constexpr std::string_view kSpaces =
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
    "\\x{205F}\\x{3000}";
constexpr std::string_view kWords = "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kHex = "0-9A-Fa-f";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape();
      } else if (c == '[') {
        std::string one;
        if (!read_class(one, 0)) return fail();
        out_ += one;
      } else if (c == '(') {
        group();
      } else if (c == '{' && at_ + 1 < in_.size() && in_[at_ + 1] == ',') {
        out_ += "{0,";
        at_ += 2;
      } else {
        out_ += c;
        ++at_;
        // In this dialect a plus behind an interval repeats it, and does not make it possessive.
        if (c == '}' && at_ < in_.size() && in_[at_] == '+' && closes_interval()) {
          const size_t begin = atom_begin();
          if (begin == out_.npos) return fail();
          out_.insert(begin, "(?:");
          out_ += ')';
        }
      }
      if (!problem_.empty()) return fail();
    }
    return std::move(out_);
  }

 private:
  Error fail() {
    return Error{
        ErrorCode::unsupported,
        problem_.empty() ? "it is not understood at byte " + std::to_string(at_) : problem_, "",
        ""};
  }

  bool closes_interval() const {
    const size_t open = out_.rfind('{');
    if (open == out_.npos || open == 0) return false;
    for (size_t i = open + 1; i + 1 < out_.size(); ++i) {
      if (out_[i] != ',' && std::isdigit(static_cast<unsigned char>(out_[i])) == 0) return false;
    }
    return out_.size() > open + 2;
  }

  // Where the atom before a closing interval begins: only what is one character or class is known.
  size_t atom_begin() const {
    size_t at = out_.rfind('{');
    if (at == 0) return out_.npos;
    const char last = out_[at - 1];
    if (last == ')') return out_.npos;
    if (last == '}') {
      at = out_.rfind('\\', at - 1);
      return at;
    }
    if (last == ']') {
      at = out_.rfind('[', at - 1);
      return at;
    }
    if (at >= 2 && out_[at - 2] == '\\') return at - 2;
    --at;
    while (at > 0 && (static_cast<unsigned char>(out_[at]) & 0xC0) == 0x80) --at;
    return at;
  }

  // "(?m" means that '.' matches line feeds, which PCRE2 calls s.
  void group() {
    out_ += '(';
    ++at_;
    if (!in_.substr(at_).starts_with('?')) return;
    size_t end = at_ + 1;
    while (end < in_.size() &&
           (in_[end] == 'i' || in_[end] == 'm' || in_[end] == 'x' || in_[end] == '-')) {
      ++end;
    }
    if (end == at_ + 1 || end >= in_.size() || (in_[end] != ':' && in_[end] != ')')) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  // The set behind a backslash at in_[at_], as the inside of a class; empty if it is none.
  // `negated`: that it stands for all others.
  std::string shorthand(bool& negated) const {
    if (at_ + 1 >= in_.size()) return {};
    const char c = in_[at_ + 1];
    negated = c == 'S' || c == 'D' || c == 'W' || c == 'H';
    switch (c) {
      case 's':
      case 'S':
        return std::string(kSpaces);
      case 'd':
      case 'D':
        return "\\p{Nd}";
      case 'w':
      case 'W':
        return std::string(kWords);
      case 'h':
      case 'H':
        return std::string(kHex);
      default:
        return {};
    }
  }

  // "\p{...}" at in_[at_], in PCRE2's names.
  std::string property() {
    const bool upper = in_[at_ + 1] == 'P';
    const size_t close = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || close == in_.npos) {
      const std::string copied(in_.substr(at_, 3));  // "\pL"
      at_ = std::min(in_.size(), at_ + 3);
      return copied;
    }
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    at_ = close + 1;
    bool negated = upper;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    std::string plain;
    for (const char c : name) {
      if (c == '_' || c == '-' || c == ' ') continue;
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    std::string_view known = name;
    for (const auto& [other, ours] : kProperties) {
      if (other == plain) known = ours;
    }
    return std::string(negated ? "\\P{" : "\\p{") + std::string(known) + "}";
  }

  void escape() {
    bool negated = false;
    if (const std::string set = shorthand(negated); !set.empty()) {
      out_ += (negated ? "[^" : "[") + set + "]";
      at_ += 2;
      return;
    }
    if (at_ + 1 < in_.size() && (in_[at_ + 1] == 'p' || in_[at_ + 1] == 'P')) {
      out_ += property();
      return;
    }
    copy_escape(out_);
  }

  // Escapes that mean the same in both: characters, anchors, back references. \uHHHH has no equal
  // spelling.
  void copy_escape(std::string& out) {
    if (at_ + 1 >= in_.size()) {
      problem_ = "it ends with a backslash";
      return;
    }
    if (in_[at_ + 1] == 'u' && at_ + 6 <= in_.size()) {
      out += "\\x{" + std::string(in_.substr(at_ + 2, 4)) + "}";
      at_ += 6;
      return;
    }
    size_t n = 2;
    while (at_ + n < in_.size() && (static_cast<unsigned char>(in_[at_ + n]) & 0xC0) == 0x80) ++n;
    const auto c = static_cast<unsigned char>(in_[at_ + 1]);
    if (c >= 0x80) {  // a character that needs no backslash
      out += in_.substr(at_ + 1, n - 1);
    } else {
      out += in_.substr(at_, 2);
      n = 2;
    }
    at_ += n;
  }

  // "[...]" at in_[at_]: something that matches one character, appended to `out`.
  bool read_class(std::string& out, int depth) {
    if (depth >= kMaxClassDepth) {
      problem_ = "classes nest more than 32 deep";
      return false;
    }
    ++at_;
    bool negated = false;
    if (at_ < in_.size() && in_[at_] == '^') {
      negated = true;
      ++at_;
    }
    // Intersected parts; each is a plain set and other things that match one character.
    std::vector<std::string> parts;
    std::string plain, others;
    const auto finish_part = [&] {
      std::string part = plain.empty() && !others.empty() ? "" : "[" + plain + "]";
      if (!others.empty()) part = "(?:" + part + (part.empty() ? others.substr(1) : others) + ")";
      parts.push_back(std::move(part));
      plain.clear();
      others.clear();
    };
    for (bool first = true;; first = false) {
      if (at_ >= in_.size()) {
        problem_ = "a class has no end";
        return false;
      }
      const char c = in_[at_];
      if (c == ']' && !first) break;
      if (c == '[' && in_.substr(at_).starts_with("[:")) {
        const size_t close = in_.find(":]", at_);
        if (close == in_.npos) {
          problem_ = "a class has no end";
          return false;
        }
        plain += in_.substr(at_, close + 2 - at_);
        at_ = close + 2;
      } else if (c == '[') {
        std::string inner;
        if (!read_class(inner, depth + 1)) return false;
        others += "|" + inner;
      } else if (c == '&' && in_.substr(at_).starts_with("&&")) {
        at_ += 2;
        finish_part();
      } else if (c == '\\') {
        if (!class_escape(plain, others)) return false;
      } else {
        if (c == ']') plain += '\\';
        plain += c;
        ++at_;
      }
    }
    ++at_;
    const bool simple = parts.empty() && others.empty();
    if (simple) {
      out += (negated ? "[^" : "[") + plain + "]";
      return true;
    }
    finish_part();
    std::string joined;
    for (size_t i = 0; i + 1 < parts.size(); ++i) joined += "(?=" + parts[i] + ")";
    joined += parts.back();
    out += negated ? "(?:(?!" + joined + ")(?s:.))" : "(?:" + joined + ")";
    return true;
  }

  bool class_escape(std::string& plain, std::string& others) {
    bool negated = false;
    if (const std::string set = shorthand(negated); !set.empty()) {
      if (negated) {
        others += "|[^" + set + "]";
      } else {
        plain += set;
      }
      at_ += 2;
      return true;
    }
    if (at_ + 1 < in_.size() && (in_[at_ + 1] == 'p' || in_[at_ + 1] == 'P')) {
      plain += property();
      return true;
    }
    copy_escape(plain);
    return problem_.empty();
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  std::string problem_;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return Error{ErrorCode::unsupported, "it has more than 64 KiB", "", ""};
  }
  return Translator(pattern).run();
}

}  // namespace headrace::text
