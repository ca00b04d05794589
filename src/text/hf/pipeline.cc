// See pipeline.h.
#include "text/hf/pipeline.h"

#include <algorithm>

#include "text/hf/encode_fault.h"
#include "text/hf/regex_budget.h"
#include "text/unicode.h"

namespace headrace::text {
namespace {

constexpr std::string_view kKindNames[] = {"BPE", "BPE by scores", "Unigram", "WordPiece",
                                           "WordLevel"};

class PipelineStream final : public TokenStream {
 public:
  PipelineStream(const Vocabulary& vocabulary, const DecodeSteps& steps, bool skip_special,
                 bool goes_on)
      : vocabulary_(vocabulary), chain_(steps, goes_on), skip_special_(skip_special) {}

  void push(TokenId id, std::string& out) override {
    if (!vocabulary_.is_id(id) || (skip_special_ && vocabulary_.is_hidden(id))) return;
    if (vocabulary_.is_padding(id)) return;
    chain_.push(vocabulary_.pieces[static_cast<size_t>(id)], out);
  }
  void finish(std::string& out) override { chain_.finish(false, out); }

 private:
  const Vocabulary& vocabulary_;
  DecodeChain chain_;
  bool skip_special_;
};

// With every ill-formed part replaced; `moved` are the stretches as they lie in the result.
std::string replace_invalid_in(std::string_view text,
                               std::span<const TokenMatcher::Trusted> stretches,
                               std::vector<TokenMatcher::Trusted>& moved) {
  std::string out;
  size_t at = 0;
  for (const TokenMatcher::Trusted& stretch : stretches) {
    out += replace_invalid(text.substr(at, stretch.begin - at));
    const size_t begin = out.size();
    out += replace_invalid(text.substr(stretch.begin, stretch.end - stretch.begin));
    moved.push_back({begin, out.size()});
    at = stretch.end;
  }
  return out + replace_invalid(text.substr(at));
}

}  // namespace

PipelineTokenizer::PipelineTokenizer(Vocabulary vocabulary, TokenMatcher matcher, Pipeline pipeline)
    : BaseTokenizer(std::move(vocabulary), std::move(matcher)),
      pipeline_(std::move(pipeline)),
      model_(make_word_model(this->vocabulary(), pipeline_.model)) {
  std::vector<TokenId>* side = &prefix_;
  for (const TemplateItem& item : pipeline_.single) {
    if (item.text == 0) {
      side = &suffix_;
    } else {
      side->insert(side->end(), item.ids.begin(), item.ids.end());
    }
  }
}

std::string PipelineTokenizer::description() const {
  return std::string(kKindNames[static_cast<size_t>(pipeline_.model.kind)]) + " (tokenizer.json)";
}

/// One call to encode: stretches of ordinary text in order.
class PipelineTokenizer::Encoding final : public Run {
 public:
  Encoding(const PipelineTokenizer& owner, size_t num_bytes)
      : owner_(owner),
        words_(owner.model_->start(num_bytes)),
        buffers_(owner.pipeline_.cutters.size()) {}

  void append(std::string_view text, std::vector<TokenId>& out) override {
    cut(0, text, false, out);
  }

  /// `text` is normalised; `first`: it begins the whole text.
  void cut(size_t step, std::string_view text, bool first, std::vector<TokenId>& out) {
    const Cutters& cutters = owner_.pipeline_.cutters;
    if (step == cutters.size()) return words_->append(text, out);
    cutters[step]->cut(text, first, buffers_[step], [&](std::string_view piece, bool is_first) {
      cut(step + 1, piece, is_first, out);
    });
  }

 private:
  const PipelineTokenizer& owner_;
  std::unique_ptr<WordModel::Run> words_;
  std::vector<std::string> buffers_;
};

std::unique_ptr<BaseTokenizer::Run> PipelineTokenizer::start(size_t num_bytes) const {
  return std::make_unique<Encoding>(*this, num_bytes);
}

void PipelineTokenizer::append_all(std::string_view text,
                                   std::span<const TokenMatcher::Trusted> trusted,
                                   std::vector<TokenId>& out) const {
  std::string fixed;
  std::vector<TokenMatcher::Trusted> moved;
  if (!pipeline_.keeps_bytes && !is_well_formed(text)) {
    fixed = replace_invalid_in(text, trusted, moved);
    text = fixed;
    trusted = moved;
  }
  Encoding encoding(*this, text.size());
  std::string normalized;
  const auto on_token = [&](TokenId id) { out.push_back(id); };
  matcher().split_early(
      text, trusted,
      [&](size_t begin, size_t end, bool is_trusted) {
        normalized.assign(text, begin, end - begin);
        for (const auto& step : pipeline_.normalizer) step->apply(normalized);
        bool first = begin == 0;
        matcher().split_late(
            normalized, is_trusted,
            [&](std::string_view piece) {
              encoding.cut(0, piece, first && piece.data() == normalized.data(), out);
            },
            on_token);
      },
      on_token);
}

std::string PipelineTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string out;
  PipelineStream stream(vocabulary(), pipeline_.decoder, skip_special, false);
  for (const TokenId id : ids) stream.push(id, out);
  stream.finish(out);
  return out;
}

std::unique_ptr<TokenStream> PipelineTokenizer::start_decoding(bool skip_special,
                                                               bool goes_on) const {
  return std::make_unique<PipelineStream>(vocabulary(), pipeline_.decoder, skip_special, goes_on);
}

Result<TokenPair> PipelineTokenizer::encode_pair(std::string_view first,
                                                 std::string_view second) const {
  HEADRACE_ASSIGN(const auto a, encode(first, EncodeOptions{false, false}));
  HEADRACE_ASSIGN(const auto b, encode(second, EncodeOptions{false, false}));
  TokenPair made;
  for (const TemplateItem& item : pipeline_.pair) {
    const std::vector<TokenId>& ids = item.text == 0 ? a : item.text == 1 ? b : item.ids;
    made.ids.insert(made.ids.end(), ids.begin(), ids.end());
    made.types.insert(made.types.end(), ids.size(), item.type);
  }
  return made;
}

namespace {

void describe_template(const TokenTemplate& items, std::string& out) {
  for (const TemplateItem& item : items) {
    out += " (";
    if (item.text >= 0) out += item.text == 0 ? "A" : "B";
    for (const TokenId id : item.ids) out += " " + std::to_string(id);
    out += " type " + std::to_string(item.type) + ")";
  }
}

void describe_pipeline(const Pipeline& pipeline, std::vector<std::string>& steps) {
  steps.push_back("model: " + pipeline.model.describe());
  for (const auto& step : pipeline.normalizer) steps.push_back("normaliser: " + step->describe());
  for (const auto& step : pipeline.cutters) steps.push_back("pre-tokeniser: " + step->describe());
  std::string post = "post-processor:";
  describe_template(pipeline.single, post);
  post += ";";
  describe_template(pipeline.pair, post);
  steps.push_back(std::move(post));
  for (const auto& step : pipeline.decoder) steps.push_back("decoder: " + step->describe());
}

// What each token adds to a text that goes on before and behind it.
void spell_in_text(Vocabulary& vocabulary, const DecodeSteps& decoder) {
  vocabulary.bytes.reserve(vocabulary.size(), vocabulary.pieces.num_bytes());
  std::string text;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    text.clear();
    if (!vocabulary.is_padding(static_cast<TokenId>(id))) {
      DecodeChain chain(decoder, true);
      chain.push(vocabulary.pieces[id], text);
      chain.finish(true, text);
    }
    vocabulary.bytes.add(text);
  }
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> build_pipeline(Vocabulary vocabulary, Pipeline pipeline,
                                                        std::string_view key) {
  vocabulary.algorithm = Algorithm::pipeline;
  try {
    const RegexBudget budget(vocabulary.pieces.num_bytes());
    for (AddedRule& rule : vocabulary.added) {
      if (!rule.late) continue;
      std::string spelled(vocabulary.pieces[static_cast<size_t>(rule.id)]);
      for (const auto& step : pipeline.normalizer) step->apply(spelled);
      if (spelled != vocabulary.pieces[static_cast<size_t>(rule.id)]) rule.spelled = spelled;
    }
    describe_pipeline(pipeline, vocabulary.steps);
    spell_in_text(vocabulary, pipeline.decoder);
  } catch (const EncodeFault& fault) {
    Error error = fault.error;
    return std::move(error).at(key);
  }
  HEADRACE_ASSIGN(TokenMatcher matcher, TokenMatcher::make(vocabulary, key));
  return std::shared_ptr<const Tokenizer>(std::make_shared<PipelineTokenizer>(
      std::move(vocabulary), std::move(matcher), std::move(pipeline)));
}

}  // namespace headrace::text
