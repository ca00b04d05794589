// See regex.h. Limits and options: pcre2api(3).
#include "text/hf/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "checkpoint/quote_name.h"
#include "text/hf/encode_fault.h"
#include "text/hf/regex_budget.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kLeastMatchLimit = 20'000;
/// A step may read all of a text, so that in a long one there may be fewer of them.
constexpr size_t kMatchWork = 10'000'000'000;
constexpr size_t kMatchesBetweenChecks = 64;

// Places at which a match may begin are tried so many at a time, between two looks at the clock.
constexpr size_t kFirstPlaces = 64;
constexpr auto kShortSearch = std::chrono::milliseconds(1);
constexpr auto kLongSearch = std::chrono::milliseconds(50);
constexpr uint32_t kDepthLimit = 250'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackMost = 8 * 1024 * 1024;

struct FreeContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeCompile {
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
struct FreeData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

std::string pcre2_message(int code) {
  unsigned char text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// `text` with a control character for every ill-formed byte: offsets stay.
std::string with_ill_formed_marked(std::string_view text) {
  std::string out(text);
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Decoded c = decode_utf8(p, end);
    if (!c.valid) {
      for (uint32_t i = 0; i < c.size; ++i) out[static_cast<size_t>(p - text.data()) + i] = '\x01';
    }
    p += c.size;
  }
  return out;
}

/// Steps that a match in a text of `size` bytes may take.
uint32_t match_limit(size_t size) {
  const size_t steps = kMatchWork / std::max<size_t>(size, 1);
  return static_cast<uint32_t>(std::clamp<size_t>(steps, kLeastMatchLimit, kMatchLimit));
}

/// The first place behind `at` where a character begins.
size_t next_character(std::string_view text, size_t at) {
  for (++at; at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;) ++at;
  return at;
}

/// How many places are tried in one go: as many as take some milliseconds. Looks at the clock.
class SearchWidth {
 public:
  /// A pattern that asks where the search began sees one search only.
  explicit SearchWidth(std::string_view pattern)
      : pattern_(pattern), is_whole_(pattern.find("\\G") != pattern.npos) {}

  /// The last place to try of a search that begins `at` a place of `size`.
  size_t last_place(size_t at, size_t size) const {
    return is_whole_ || size - at <= num_places_ ? size : at + num_places_;
  }
  void none_found() {
    const auto now = RegexBudget::check(pattern_);
    if (begin_ != kNever && now - begin_ < kShortSearch) num_places_ *= 2;
    if (begin_ != kNever && now - begin_ > kLongSearch) {
      num_places_ = std::max<size_t>(1, num_places_ / 4);
    }
    begin_ = now;
  }
  void found() {
    begin_ = kNever;
    if (++num_matches_ % kMatchesBetweenChecks == 0) RegexBudget::check(pattern_);
  }

 private:
  static constexpr std::chrono::nanoseconds kNever{-1};

  std::string_view pattern_;
  bool is_whole_;
  size_t num_places_ = kFirstPlaces;
  size_t num_matches_ = 0;
  std::chrono::nanoseconds begin_ = kNever;  ///< of a search that follows one without a match
};

}  // namespace

struct Regex::State {
  explicit State(pcre2_code* compiled) : code(compiled) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { pcre2_code_free(code); }

  pcre2_code* const code;
};

Regex::Regex(std::string pattern, std::unique_ptr<State> state)
    : pattern_(std::move(pattern)), state_(std::move(state)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  const auto fail = [&](std::string what) {
    return Error{ErrorCode::unsupported,
                 "the pattern " + quote_name(pattern) + " cannot be used: " + std::move(what), "",
                 ""};
  };
  auto translated = translate_pattern(pattern);
  if (!translated.ok()) return fail(translated.error().message);
  const std::unique_ptr<pcre2_compile_context, FreeCompile> context(
      pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 200);
  int error = 0;
  size_t at = 0;
  auto state = std::make_unique<State>(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_USE_OFFSET_LIMIT | PCRE2_MULTILINE |
                        PCRE2_NEVER_BACKSLASH_C | PCRE2_ALLOW_EMPTY_CLASS,
                    &error, &at, context.get()));
  if (state->code == nullptr) {
    return fail(pcre2_message(error) + " at byte " + std::to_string(at) + " of " +
                quote_name(*translated));
  }
  // Without the compiler, as on some systems, matching is slower and otherwise the same.
  pcre2_jit_compile(state->code, PCRE2_JIT_COMPLETE);
  return Regex(std::string(pattern), std::move(state));
}

void Regex::each_match(std::string_view text, FunctionRef<void(size_t, size_t)> found) const {
  if (text.empty()) return;
  std::string marked;
  if (!is_well_formed(text)) {
    marked = with_ill_formed_marked(text);
    text = marked;
  }
  const pcre2_code* const code = state_->code;
  // One pair for the whole match; of groups nobody asks. Kept by the thread: words are short.
  thread_local const std::unique_ptr<pcre2_match_data, FreeData> data(
      pcre2_match_data_create(1, nullptr));
  thread_local const std::unique_ptr<pcre2_match_context, FreeContext> context(
      pcre2_match_context_create(nullptr));
  thread_local const std::unique_ptr<pcre2_jit_stack, FreeStack> stack(
      pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr));
  if (data == nullptr || context == nullptr) throw std::bad_alloc();
  const RegexBudget budget(text.size());
  pcre2_set_match_limit(context.get(), match_limit(text.size()));
  pcre2_set_depth_limit(context.get(), kDepthLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  if (stack != nullptr) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t last_end = 0;
  bool has_last = false;
  SearchWidth width(pattern_);
  for (size_t at = 0; at <= text.size();) {
    const size_t last_place = width.last_place(at, text.size());
    pcre2_set_offset_limit(context.get(), last_place);
    const int rc =
        pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (rc == PCRE2_ERROR_NOMATCH) {
      if (last_place == text.size()) return;
      width.none_found();
      at = next_character(text, last_place);
      continue;
    }
    width.found();
    if (rc < 0) {
      throw EncodeFault{Error{ErrorCode::resource_exhausted,
                              "the pattern " + quote_name(pattern_) +
                                  " does not come to an end on this text: " + pcre2_message(rc),
                              "tokenizer", ""}};
    }
    const size_t* const range = pcre2_get_ovector_pointer(data.get());
    const size_t begin = range[0], end = range[1];
    if (end < begin || begin < at) return;  // a \K inside of a look-ahead
    const bool repeats = begin == end && has_last && begin == last_end;
    if (!repeats) found(begin, end);
    has_last = true;
    last_end = end;
    at = end;
    if (begin == end) {
      if (at >= text.size()) return;
      at += decode_utf8(text.data() + at, text.data() + text.size()).size;
    }
  }
}

}  // namespace headrace::text
