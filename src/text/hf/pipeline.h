// A tokenizer of steps, as a tokenizer.json describes it: normalise, cut, look up, put special
// tokens around, and back. Owns the steps. Must not know JSON or files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/base_tokenizer.h"
#include "text/hf/cutter.h"
#include "text/hf/decoder.h"
#include "text/hf/text_step.h"
#include "text/hf/word_model.h"

namespace headrace::text {

/// A part of what a post-processor makes of one or two texts.
struct TemplateItem {
  int text = -1;  ///< 0, 1: the tokens of this text; -1: `ids`
  std::vector<TokenId> ids;
  uint8_t type = 0;  ///< the segment it belongs to
};
using TokenTemplate = std::vector<TemplateItem>;

/// All that a file says, besides the vocabulary.
struct Pipeline {
  TextSteps normalizer;
  Cutters cutters;
  ModelSpec model;
  TokenTemplate single{{0, {}, 0}};
  TokenTemplate pair{{0, {}, 0}, {1, {}, 1}};
  DecodeSteps decoder;
  bool keeps_bytes = false;  ///< ill-formed text is tokenised as the bytes it is
};

class PipelineTokenizer final : public BaseTokenizer {
 public:
  /// `vocabulary.steps` describe `pipeline` to the guard. `pipeline.single` has text 0 once.
  PipelineTokenizer(Vocabulary vocabulary, TokenMatcher matcher, Pipeline pipeline);

  std::string description() const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  std::unique_ptr<TokenStream> start_decoding(bool skip_special, bool goes_on) const override;
  Result<TokenPair> encode_pair(std::string_view first, std::string_view second) const override;

 protected:
  std::unique_ptr<Run> start(size_t num_bytes) const override;
  bool strips_first_space() const override { return false; }
  void append_all(std::string_view text, std::span<const TokenMatcher::Trusted> trusted,
                  std::vector<TokenId>& out) const override;
  std::span<const TokenId> prefix() const override { return prefix_; }
  std::span<const TokenId> suffix() const override { return suffix_; }

 private:
  class Encoding;

  Pipeline pipeline_;
  std::unique_ptr<const WordModel> model_;
  std::vector<TokenId> prefix_, suffix_;
};

/// Fills `vocabulary.steps` and `vocabulary.bytes`, brings the spellings of late tokens to normal
/// form, and builds the tokenizer. `key` names the file in errors.
Result<std::shared_ptr<const Tokenizer>> build_pipeline(Vocabulary vocabulary, Pipeline pipeline,
                                                        std::string_view key);

}  // namespace headrace::text
