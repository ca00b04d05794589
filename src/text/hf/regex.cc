// See regex.h. Limits and options: pcre2api(3).
#include "text/hf/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>

#include "checkpoint/quote_name.h"
#include "text/hf/encode_fault.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

constexpr uint32_t kMatchLimit = 10'000'000;
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
  auto state = std::make_unique<State>(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_ALLOW_EMPTY_CLASS,
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
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_depth_limit(context.get(), kDepthLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  if (stack != nullptr) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t last_end = 0;
  bool has_last = false;
  for (size_t at = 0; at <= text.size();) {
    const int rc =
        pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (rc == PCRE2_ERROR_NOMATCH) return;
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
