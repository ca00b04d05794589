// A tokenizer that knows ids and no text; see make_id_tokenizer in tokenizer.h.
#include <algorithm>

#include "base/check.h"
#include "base/read_number.h"
#include "text/digest.h"
#include "text/vocabulary.h"

namespace headrace {
namespace {

class IdTokenizer final : public Tokenizer {
 public:
  IdTokenizer(int64_t vocab_size, const IdTokenizerOptions& options) {
    const auto n = static_cast<size_t>(vocab_size);
    pieces_.reserve(n, n * 8);
    for (size_t id = 0; id < n; ++id) pieces_.add("[" + std::to_string(id) + "]");
    if (is_id(options.bos)) special_.bos = options.bos;
    if (is_id(options.eos)) special_.eos = options.eos;
    std::vector<TokenId>& ends = special_.end_of_generation;
    for (const TokenId id : options.end_of_generation) {
      if (is_id(id)) ends.push_back(id);
    }
    if (special_.eos >= 0) ends.push_back(special_.eos);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    text::Digest digest;
    digest.add("headrace ids 1");
    digest.add_number(n);
    digest.add_number(static_cast<uint64_t>(special_.bos));
    for (const TokenId id : ends) digest.add_number(static_cast<uint64_t>(id));
    fingerprint_.digest = digest.hex();
  }

  std::string description() const override { return "none (token ids alone)"; }
  int64_t vocab_size() const override { return static_cast<int64_t>(pieces_.size()); }
  const SpecialTokens& special() const override { return special_; }

  TokenKind kind(TokenId id) const override {
    HEADRACE_CHECK(is_id(id));
    const std::vector<TokenId>& ends = special_.end_of_generation;
    const bool is_control = id == special_.bos || std::binary_search(ends.begin(), ends.end(), id);
    return is_control ? TokenKind::control : TokenKind::normal;
  }

  std::string_view piece(TokenId id) const override {
    HEADRACE_CHECK(is_id(id));
    return pieces_[static_cast<size_t>(id)];
  }
  std::string bytes(TokenId id) const override { return std::string(piece(id)); }

  std::optional<TokenId> find(std::string_view piece) const override {
    if (piece.size() < 3 || piece.front() != '[' || piece.back() != ']') return std::nullopt;
    const auto id = number_within<TokenId>(piece.substr(1, piece.size() - 2), 0,
                                           static_cast<TokenId>(pieces_.size() - 1));
    if (!id || pieces_[static_cast<size_t>(*id)] != piece) return std::nullopt;
    return *id;
  }

  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions&) const override {
    if (text.empty()) return std::vector<TokenId>();
    return Error{ErrorCode::not_found,
                 "the model's directory has no tokenizer.json or tokenizer.model", "",
                 "give the prompt as token ids"};
  }

  Result<std::vector<TokenId>> encode(std::span<const TextSegment> segments, bool) const override {
    for (const TextSegment& segment : segments) {
      if (!segment.text.empty()) return encode(segment.text, EncodeOptions{});
    }
    return std::vector<TokenId>();
  }

  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string out;
    for (const TokenId id : ids) {
      if (!is_id(id) || (skip_special && kind(id) == TokenKind::control)) continue;
      out += piece(id);
    }
    return out;
  }

  const TokenizerFingerprint& fingerprint() const override { return fingerprint_; }

 private:
  bool is_id(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < pieces_.size(); }

  text::StringPool pieces_;
  SpecialTokens special_;
  TokenizerFingerprint fingerprint_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_id_tokenizer(int64_t vocab_size,
                                                           const IdTokenizerOptions& options) {
  constexpr auto kMost = static_cast<int64_t>(text::kMaxVocabularySize);
  if (vocab_size < 1 || vocab_size > kMost) {
    return Error{ErrorCode::out_of_range,
                 "expected a vocabulary of 1 to " + std::to_string(kMost) + " tokens, found " +
                     std::to_string(vocab_size),
                 "", ""};
  }
  return std::shared_ptr<const Tokenizer>(std::make_shared<IdTokenizer>(vocab_size, options));
}

}  // namespace headrace
