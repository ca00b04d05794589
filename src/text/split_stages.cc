// The patterns of split_stages.h, as the models' tokenizer.json files and `tokenizer.ggml.pre`
// define them.
#include "text/split_stages.h"

#include <algorithm>
#include <array>

namespace headrace::text {
namespace {

struct Range {
  char32_t first, last;
};

// The letters with case that DeepSeek LLM's pattern lists one by one.
constexpr Range kCasedLetters[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},
    {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
    {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
    {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
    {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},
    {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},
    {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
    {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},
    {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
    {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},
    {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},
    {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},
    {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};
constexpr Range kPunctuation[] = {{'!', '/'},       {':', '~'},       {0x2018, 0x201F},
                                  {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
constexpr Range kEastAsian[] = {{0x800, 0x9FA5}, {0xAC00, 0xD7FF}};
constexpr Range kIdeographsAndKana[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};

// The ranges must be sorted.
bool is_in(std::span<const Range> ranges, char32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t c, const Range& r) { return c < r.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

// First maximal run of characters that `is_member(p, char)` accepts, with one white space before
// it if kSpaceBefore: `\s?[...]+`.
template <bool kSpaceBefore, class IsMember>
Match find_run(const CharReader& text, const char* p, IsMember is_member) {
  const auto run_end = [&](const char* q) {
    while (q < text.end()) {
      const Char c = text.at(q);
      if (!is_member(q, c)) break;
      q += c.size;
    }
    return q;
  };
  while (p < text.end()) {
    const Char c = text.at(p);
    if (kSpaceBefore && (c.classes & kSpace) != 0) {
      if (const char* end = run_end(p + c.size); end > p + c.size) return {p, end};
    }
    if (is_member(p, c)) return {p, run_end(p + c.size)};
    p += c.size;
  }
  return {p, p};
}

template <uint8_t kClasses, bool kSpaceBefore>
Match find_class_run(const CharReader& text, const char* p) {
  return find_run<kSpaceBefore>(text, p,
                                [](const char*, Char c) { return (c.classes & kClasses) != 0; });
}

template <bool kSpaceBefore>
Match find_range_run(const CharReader& text, const char* p, std::span<const Range> ranges) {
  return find_run<kSpaceBefore>(text, p, [&](const char* q, Char) {
    const Decoded c = decode_utf8(q, text.end());
    return c.valid && is_in(ranges, c.code);
  });
}

Match find_cased_letters(const CharReader& text, const char* p) {
  return find_range_run<true>(text, p, kCasedLetters);
}
Match find_listed_punctuation(const CharReader& text, const char* p) {
  return find_range_run<true>(text, p, kPunctuation);
}
Match find_east_asian(const CharReader& text, const char* p) {
  return find_range_run<false>(text, p, kEastAsian);
}
Match find_ideographs_and_kana(const CharReader& text, const char* p) {
  return find_range_run<false>(text, p, kIdeographsAndKana);
}

Match find_line_break(const CharReader& text, const char* p) {
  while (p < text.end() && *p != '\r' && *p != '\n') ++p;
  return {p, p < text.end() ? p + 1 : p};
}

// `\s+$`
Match find_space_at_end(const CharReader& text, const char* p) {
  const char* begin = text.end();
  while (p < text.end()) {
    const Char c = text.at(p);
    if ((c.classes & kSpace) == 0) {
      begin = text.end();
    } else if (begin == text.end()) {
      begin = p;
    }
    p += c.size;
  }
  return {begin, text.end()};
}

// `\p{N}{1,kMost}`
template <int kMost>
Match find_digits(const CharReader& text, const char* p) {
  while (p < text.end()) {
    const char* const end = skip_digits(text, p, kMost);
    if (end > p) return {p, end};
    p += text.at(p).size;
  }
  return {p, p};
}

Match find_gpt2_word(const CharReader& text, const char* p) {
  return {p, p < text.end() ? gpt2_word<false>(text, p) : p};
}

// `[\p{P}\$\+<=>\^~\|]+`, with the grave accent too if kGrave.
template <bool kGrave>
Match find_punctuation(const CharReader& text, const char* p) {
  return find_run<false>(text, p, [](const char* q, Char c) {
    constexpr std::string_view kMore = "$+<=>^~|";
    return (c.classes & kPunct) != 0 || kMore.find(*q) != kMore.npos || (kGrave && *q == '`');
  });
}

// `[0-9][0-9][0-9]`
Match find_three_digits(const CharReader& text, const char* p) {
  const char* begin = p;
  for (; p < text.end(); ++p) {
    if (*p < '0' || *p > '9') {
      begin = p + 1;
    } else if (p - begin == 2) {
      return {begin, p + 1};
    }
  }
  return {text.end(), text.end()};
}

bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Where the match of find_deepseek_v3_word that begins at `p` ends, or null.
const char* deepseek_v3_word(const CharReader& text, const char* p) {
  constexpr uint8_t kSymbols = kPunct | kSymbol;
  const Char c = text.at(p);
  const char* const after = p + c.size;
  if ((c.classes & kSymbols) != 0 && c.size == 1 && after < text.end() && is_ascii_letter(*after)) {
    const char* q = after;
    while (q < text.end() && is_ascii_letter(*q)) ++q;
    return q;
  }
  if ((c.classes & (kLetter | kMark)) != 0) return text.skip(after, kLetter | kMark);
  if ((c.classes & kSymbols) == 0 && *p != '\r' && *p != '\n') {
    if (const char* q = text.skip(after, kLetter | kMark); q > after) return q;
  }
  const char* const symbols = *p == ' ' ? after : p;
  if (const char* q = text.skip(symbols, kSymbols); q > symbols) return text.skip_line_breaks(q);
  if ((c.classes & kSpace) == 0) return nullptr;
  const SpaceRun run = space_run(text, p);
  return run.after_break != nullptr ? run.after_break : space_word(text, p, run);
}

// `[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|
// \s+(?!\S)|\s+`
Match find_deepseek_v3_word(const CharReader& text, const char* p) {
  while (p < text.end()) {
    if (const char* end = deepseek_v3_word(text, p); end != nullptr) return {p, end};
    p += text.at(p).size;
  }
  return {p, p};
}

constexpr FindMatch kDeepseekLlm[] = {find_line_break,         find_cased_letters,
                                      find_listed_punctuation, find_space_at_end,
                                      find_east_asian,         find_class_run<kNumber, false>};
constexpr FindMatch kDeepseekCoder[] = {find_line_break, find_class_run<kLetter, true>,
                                        find_class_run<kPunct, true>, find_east_asian,
                                        find_digits<1>};
constexpr FindMatch kDeepseekV3[] = {find_digits<3>, find_ideographs_and_kana,
                                     find_deepseek_v3_word};
constexpr FindMatch kFalcon[] = {find_punctuation<true>, find_gpt2_word, find_three_digits};
constexpr FindMatch kCommon[] = {find_punctuation<false>, find_gpt2_word,
                                 find_class_run<kNumber, false>, find_three_digits};

}  // namespace

const std::span<const FindMatch> kDeepseekLlmStages = kDeepseekLlm;
const std::span<const FindMatch> kDeepseekCoderStages = kDeepseekCoder;
const std::span<const FindMatch> kDeepseekV3Stages = kDeepseekV3;
const std::span<const FindMatch> kFalconStages = kFalcon;
const std::span<const FindMatch> kCommonStages = kCommon;

void split_in_stages(std::span<const FindMatch> stages, std::string_view text,
                     FunctionRef<void(std::string_view)> word) {
  if (text.empty()) return;
  if (stages.empty()) return word(text);
  const CharReader reader(text.data() + text.size());
  const auto next_stage = [&](const char* begin, const char* end) {
    split_in_stages(stages.subspan(1), {begin, static_cast<size_t>(end - begin)}, word);
  };
  for (const char* p = text.data(); p < reader.end();) {
    const Match match = stages.front()(reader, p);
    if (match.begin > p) next_stage(p, match.begin);
    if (match.end > match.begin) next_stage(match.begin, match.end);
    p = match.end;
  }
}

}  // namespace headrace::text
