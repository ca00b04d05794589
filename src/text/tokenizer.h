// Text to token ids and back. Owns vocabularies. Must not know tensors or the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/metadata.h"
#include "headrace/params.h"
#include "headrace/result.h"

namespace headrace {

/// What kind of token an id is (the numbers of `tokenizer.ggml.token_type`).
enum class TokenKind : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct EncodeOptions {
  bool add_special = true;     ///< BOS/EOS/CLS/SEP as the model's file says
  bool parse_special = false;  ///< control tokens in the text become their ids
};

/// A piece of a prompt. Template text is parsed for control tokens; message text never is.
struct TextSegment {
  std::string text;
  bool trusted = false;  ///< written by the template, not by a user

  bool operator==(const TextSegment&) const = default;
};

/// Identity of a vocabulary: equal fingerprints mean equal tokenization. `summary` parts allow a
/// message that names the first difference.
struct TokenizerFingerprint {
  std::string digest;  ///< hex; over vocabulary, merges, added tokens, normaliser, pre-tokeniser

  bool operator==(const TokenizerFingerprint&) const = default;
};

struct SpecialTokens {
  TokenId bos = -1, eos = -1, unk = -1, pad = -1, sep = -1, cls = -1, mask = -1;
  std::vector<TokenId> end_of_generation;  ///< eos, end of turn and the like
  bool add_bos = false;
  bool add_eos = false;
};

/// The tokens of two texts, as a model that compares them takes them.
struct TokenPair {
  std::vector<TokenId> ids;
  std::vector<uint8_t> types;  ///< by token: 0 in the first text and around it, 1 in the second
};

/// Tokens to the bytes of their text, as they come.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  /// Appends to `out` what became certain. Ids outside of the vocabulary stand for nothing.
  virtual void push(TokenId id, std::string& out) = 0;
  /// Appends what is still held back. Nothing may follow.
  virtual void finish(std::string& out) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// "byte-level BPE (smollm)", "SentencePiece BPE", "WordPiece".
  virtual std::string description() const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual const SpecialTokens& special() const = 0;
  virtual TokenKind kind(TokenId id) const = 0;
  /// The token as its file spells it ("Ġthe", "▁the", "<|im_end|>"). `id` must be in range.
  virtual std::string_view piece(TokenId id) const = 0;
  /// The exact bytes the token stands for in text. Control tokens: their spelling.
  virtual std::string bytes(TokenId id) const = 0;
  /// The id spelled exactly so in the file, if any.
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;

  /// Invalid UTF-8 is tokenised as the bytes it is where the vocabulary has bytes, else replaced.
  /// Time is linear in the text's length. Errors: resource_exhausted (text over 1 GiB).
  virtual Result<std::vector<TokenId>> encode(std::string_view text,
                                              const EncodeOptions& options) const = 0;
  /// A rendered template: trusted parts parse control tokens, others only user-defined ones;
  /// exactly one BOS where the model adds one, even if the template wrote it too.
  virtual Result<std::vector<TokenId>> encode(std::span<const TextSegment> segments,
                                              bool add_special) const = 0;
  /// All of the text at once. skip_special leaves control tokens out. Invalid UTF-8 stays as it is.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special) const = 0;
  /// The same token by token. With `goes_on` the ids follow others, whose text is already there:
  /// rules for the beginning of a text do not apply. The tokenizer must outlive the stream.
  virtual std::unique_ptr<TokenStream> start_decoding(bool skip_special, bool goes_on) const;
  /// Two texts with the special tokens around and between them that the model's file asks for.
  /// Error (unsupported): the tokenizer has no rule for two.
  virtual Result<TokenPair> encode_pair(std::string_view first, std::string_view second) const;

  virtual const TokenizerFingerprint& fingerprint() const = 0;
};

struct TokenizerOptions {
  std::string pre;  ///< overrides `tokenizer.ggml.pre` (--pre-tokenizer); empty: as the file says
  /// Of a Hugging Face directory: rows of the model's embedding, which may be more than there are
  /// tokens. The ids that are missing become unused tokens without text; 0: none do.
  int64_t num_rows = 0;
};

/// From GGUF metadata. Errors name the key, or the unknown pre-tokeniser and the known ones.
Result<std::shared_ptr<const Tokenizer>> make_tokenizer(const Metadata& metadata,
                                                        const TokenizerOptions& options);

/// From a Hugging Face directory: tokenizer.json, or else tokenizer.model (SentencePiece), with
/// what tokenizer_config.json, special_tokens_map.json, added_tokens.json and
/// generation_config.json say. Errors: not_found (neither is there), invalid_argument (a link that
/// leads out of the directory; one into the blobs of a Hugging Face cache does not), and those of
/// the files, which name the key.
Result<std::shared_ptr<const Tokenizer>> open_hf_tokenizer(const std::string& directory,
                                                           const TokenizerOptions& options);

/// The chat template of a Hugging Face directory: chat_template.jinja, or "default" among its
/// additional_chat_templates, or that of chat_template.json or tokenizer_config.json (of a list the
/// one called "default", else the first). Nothing where there is none.
Result<std::optional<std::string>> chat_template_of_directory(const std::string& directory);

/// What an id tokenizer knows besides the number of ids; -1 where the model does not say.
struct IdTokenizerOptions {
  TokenId bos = -1, eos = -1;              ///< ids outside of the vocabulary count as -1
  std::vector<TokenId> end_of_generation;  ///< besides eos
};

/// The ids that the files of a Hugging Face directory name, for one without a tokenizer: of
/// generation_config.json, else of config.json. Files that are no JSON objects name none.
Result<IdTokenizerOptions> special_ids_of_directory(const std::string& directory);

/// For a model without any tokenizer: a token is spelled by its id in brackets, "[17]", and so is
/// decoded text, "[17][3]". Encoding text is an Error (not_found); the empty text has no tokens.
/// Nothing is added to a text. Two are the same where number and special ids are. Error
/// (out_of_range): `vocab_size` is not in 1 to 16 777 216.
Result<std::shared_ptr<const Tokenizer>> make_id_tokenizer(int64_t vocab_size,
                                                           const IdTokenizerOptions& options);

/// The tokenizer guard: an Error (mismatch) that names the first difference unless both tokenise
/// alike. `what_a`, `what_b` name the two in the message ("model", "draft model").
Result<void> check_same_tokenizer(const Tokenizer& a, std::string_view what_a, const Tokenizer& b,
                                  std::string_view what_b);

}  // namespace headrace
