// See base_tokenizer.h.
#include "text/base_tokenizer.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "text/hf/encode_fault.h"
#include "text/hf/regex_budget.h"

namespace headrace::text {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr size_t kMaxReserved = size_t{1} << 24;  // tokens

Error too_long() {
  return Error{ErrorCode::resource_exhausted, "expected a text of at most 1 GiB", "tokenizer", ""};
}

Error no_memory() {
  return Error{ErrorCode::resource_exhausted, "not enough memory to tokenise the text", "tokenizer",
               ""};
}

bool begins_with(std::span<const TokenId> ids, std::span<const TokenId> others) {
  return ids.size() >= others.size() && std::equal(others.begin(), others.end(), ids.begin());
}

}  // namespace

BaseTokenizer::BaseTokenizer(Vocabulary vocabulary, TokenMatcher matcher)
    : vocabulary_(std::move(vocabulary)), matcher_(std::move(matcher)) {}

const TokenizerFingerprint& BaseTokenizer::fingerprint() const {
  std::call_once(fingerprint_once_, [&] { fingerprint_ = fingerprint_of(*this); });
  return fingerprint_;
}

TokenKind BaseTokenizer::kind(TokenId id) const {
  HEADRACE_CHECK(vocabulary_.is_id(id));
  return vocabulary_.kinds[static_cast<size_t>(id)];
}

std::string_view BaseTokenizer::piece(TokenId id) const {
  HEADRACE_CHECK(vocabulary_.is_id(id));
  return vocabulary_.pieces[static_cast<size_t>(id)];
}

std::string BaseTokenizer::bytes(TokenId id) const {
  HEADRACE_CHECK(vocabulary_.is_id(id));
  return std::string(vocabulary_.bytes[static_cast<size_t>(id)]);
}

std::optional<TokenId> BaseTokenizer::find(std::string_view piece) const {
  const int32_t id = vocabulary_.index.find(vocabulary_.pieces, piece);
  return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

Result<std::vector<TokenId>> BaseTokenizer::encode(std::string_view text,
                                                   const EncodeOptions& options) const {
  const Trusted whole{0, text.size()};
  return encode_text(text, {&whole, options.parse_special ? size_t{1} : size_t{0}},
                     options.add_special);
}

Result<std::vector<TokenId>> BaseTokenizer::encode(std::span<const TextSegment> segments,
                                                   bool add_special) const {
  size_t size = 0;
  for (const TextSegment& segment : segments) {
    size += segment.text.size();
    if (size > kMaxTextBytes) return too_long();
  }
  try {
    std::string joined;
    joined.reserve(size);
    std::vector<Trusted> trusted;
    for (const TextSegment& segment : segments) {
      const size_t begin = joined.size();
      joined += segment.text;
      if (!segment.trusted || segment.text.empty()) continue;
      if (!trusted.empty() && trusted.back().end == begin) {
        trusted.back().end = joined.size();
      } else {
        trusted.push_back({begin, joined.size()});
      }
    }
    return encode_text(joined, trusted, add_special);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<std::vector<TokenId>> BaseTokenizer::encode_text(std::string_view text,
                                                        std::span<const Trusted> trusted,
                                                        bool add_special) const {
  if (text.size() > kMaxTextBytes) return too_long();
  try {
    const RegexBudget budget(text.size());
    std::vector<TokenId> out;
    // Growing by doubling would touch twice the memory.
    out.reserve(std::min(text.size(), kMaxReserved) + 16);
    const std::span<const TokenId> before = add_special ? prefix() : std::span<const TokenId>();
    const std::span<const TokenId> behind = add_special ? suffix() : std::span<const TokenId>();
    out.assign(before.begin(), before.end());
    append_all(text, trusted, out);
    // The template may have written BOS too, even several times: one stays.
    if (!before.empty()) {
      size_t others = before.size();
      while (begins_with(std::span(out).subspan(others), before)) others += before.size();
      out.erase(out.begin() + static_cast<ptrdiff_t>(before.size()),
                out.begin() + static_cast<ptrdiff_t>(others));
    }
    const bool is_there =
        out.size() >= behind.size() && begins_with(std::span(out).last(behind.size()), behind);
    if (!is_there) out.insert(out.end(), behind.begin(), behind.end());
    if (out.size() < out.capacity() / 4) out.shrink_to_fit();
    return out;
  } catch (const EncodeFault& fault) {
    return fault.error;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

std::span<const TokenId> BaseTokenizer::prefix() const {
  return {&vocabulary_.special.bos, vocabulary_.special.add_bos ? size_t{1} : size_t{0}};
}

std::span<const TokenId> BaseTokenizer::suffix() const {
  return {&vocabulary_.special.eos, vocabulary_.special.add_eos ? size_t{1} : size_t{0}};
}

void BaseTokenizer::append_all(std::string_view text, std::span<const Trusted> trusted,
                               std::vector<TokenId>& out) const {
  const std::unique_ptr<Run> run = start(text.size());
  matcher_.split(
      text, trusted, [&](std::string_view piece) { run->append(piece, out); },
      [&](TokenId id) { out.push_back(id); });
}

std::string BaseTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string out;
  bool at_start = strips_first_space();
  for (const TokenId id : ids) {
    if (!vocabulary_.is_id(id)) continue;
    const bool hidden = vocabulary_.is_hidden(id);
    if (hidden && skip_special) continue;
    std::string_view text = vocabulary_.bytes[static_cast<size_t>(id)];
    if (!hidden && at_start) {
      at_start = false;
      if (text.starts_with(' ')) text.remove_prefix(1);
    }
    out += text;
  }
  return out;
}

}  // namespace headrace::text
