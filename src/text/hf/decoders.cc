// See decoders.h.
#include "text/hf/decoders.h"

#include <utility>

#include "checkpoint/quote_name.h"
#include "text/vocabulary.h"

namespace headrace::text {
namespace {

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

// The library's tidying of English text.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kRules) replace_all(text, what, by);
}

/// Sees every token whole.
class WholeTokenRun : public DecodeRun {
 public:
  void push(TokenPart part, PartSink sink) final {
    if (part.begins && part.ends) return token(part.text, sink);
    held_ += part.text;
    if (!part.ends) return;
    const std::string whole = std::exchange(held_, {});
    token(whole, sink);
  }
  void finish(bool goes_on, PartSink sink) override {
    if (!held_.empty()) {
      const std::string whole = std::exchange(held_, {});
      token(whole, sink);
    }
    end(goes_on, sink);
  }

 protected:
  virtual void token(std::string_view text, PartSink sink) = 0;
  virtual void end(bool, PartSink) {}

 private:
  std::string held_;
};

/// A step that is a function of the token alone.
template <class Function>
class EachToken final : public DecodeStep {
 public:
  EachToken(std::string what, Function function)
      : what_(std::move(what)), function_(std::move(function)) {}

  std::unique_ptr<DecodeRun> start(bool goes_on) const override {
    return std::make_unique<EachRun>(*this, !goes_on);
  }
  std::string describe() const override { return what_; }

 private:
  class EachRun final : public WholeTokenRun {
   public:
    EachRun(const EachToken& owner, bool first) : owner_(owner), first_(first) {}

   protected:
    void token(std::string_view text, PartSink sink) override {
      std::string made(text);
      owner_.function_(made, first_);
      first_ = false;
      sink({made, true, true});
    }

   private:
    const EachToken& owner_;
    bool first_;
  };

  std::string what_;
  Function function_;
};

/// `function(std::string& token, bool first)`.
template <class Function>
DecodeStepPtr each_token(std::string what, Function function) {
  return std::make_unique<EachToken<Function>>(std::move(what), std::move(function));
}

/// All tokens become one, that ends with the last of them.
class FuseRun final : public DecodeRun {
 public:
  explicit FuseRun(bool first) : first_(first) {}
  void push(TokenPart part, PartSink sink) override {
    sink({part.text, std::exchange(first_, false), false});
  }
  void finish(bool, PartSink sink) override { sink({{}, std::exchange(first_, false), true}); }

 private:
  bool first_;
};

class FuseStep final : public DecodeStep {
 public:
  std::unique_ptr<DecodeRun> start(bool goes_on) const override {
    return std::make_unique<FuseRun>(!goes_on);
  }
  std::string describe() const override { return "Fuse"; }
};

// Takes characters from the beginning of a token at once, whether it is whole or not.
class StripStartRun final : public DecodeRun {
 public:
  StripStartRun(std::string_view content, size_t most, bool goes_on)
      : content_(content), most_(most), left_(goes_on ? 0 : most) {}

  void push(TokenPart part, PartSink sink) override {
    if (part.begins) left_ = most_;
    while (left_ > 0 && part.text.starts_with(content_)) {
      part.text.remove_prefix(content_.size());
      --left_;
    }
    if (!part.text.empty()) left_ = 0;
    sink(part);
  }
  void finish(bool, PartSink) override {}

 private:
  std::string_view content_;
  size_t most_, left_;
};

class StripStopRun final : public WholeTokenRun {
 public:
  StripStopRun(std::string_view content, size_t start, size_t stop)
      : content_(content), start_(start), stop_(stop) {}

 protected:
  void token(std::string_view text, PartSink sink) override {
    for (size_t i = 0; i < start_ && text.starts_with(content_); ++i) {
      text.remove_prefix(content_.size());
    }
    for (size_t i = 0; i < stop_ && text.ends_with(content_); ++i) {
      text.remove_suffix(content_.size());
    }
    sink({text, true, true});
  }

 private:
  std::string_view content_;
  size_t start_, stop_;
};

class StripStepDecoder final : public DecodeStep {
 public:
  StripStepDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  std::unique_ptr<DecodeRun> start(bool goes_on) const override {
    if (stop_ == 0) return std::make_unique<StripStartRun>(content_, start_, goes_on);
    return std::make_unique<StripStopRun>(content_, start_, stop_);
  }
  std::string describe() const override {
    return "Strip " + quote_name(content_) + " " + std::to_string(start_) + " " +
           std::to_string(stop_);
  }

 private:
  std::string content_;
  size_t start_, stop_;
};

// The last token's suffix is no space, so that a token waits for the next.
class BpeSuffixRun final : public WholeTokenRun {
 public:
  explicit BpeSuffixRun(std::string_view suffix) : suffix_(suffix) {}

 protected:
  void token(std::string_view text, PartSink sink) override {
    give(" ", sink);
    held_ = text;
    holds_ = true;
  }
  void end(bool goes_on, PartSink sink) override { give(goes_on ? " " : "", sink); }

 private:
  void give(std::string_view by, PartSink sink) {
    if (!std::exchange(holds_, false)) return;
    replace_all(held_, suffix_, by);
    sink({held_, true, true});
  }

  std::string_view suffix_;
  std::string held_;
  bool holds_ = false;
};

class BpeSuffixStep final : public DecodeStep {
 public:
  explicit BpeSuffixStep(std::string suffix) : suffix_(std::move(suffix)) {}
  std::unique_ptr<DecodeRun> start(bool) const override {
    return std::make_unique<BpeSuffixRun>(suffix_);
  }
  std::string describe() const override { return "BPEDecoder " + quote_name(suffix_); }

 private:
  std::string suffix_;
};

// Of equal neighbours one counts.
class CtcStep final : public DecodeStep {
 public:
  CtcStep(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  std::unique_ptr<DecodeRun> start(bool) const override { return std::make_unique<CtcRun>(*this); }
  std::string describe() const override {
    return "CTC " + quote_name(pad_) + " " + quote_name(delimiter_) + (cleanup_ ? " cleanup" : "");
  }

 private:
  class CtcRun final : public WholeTokenRun {
   public:
    explicit CtcRun(const CtcStep& owner) : owner_(owner) {}

   protected:
    void token(std::string_view text, PartSink sink) override {
      if (has_last_ && text == last_) return;
      last_ = text;
      has_last_ = true;
      std::string made(text);
      replace_all(made, owner_.pad_, "");
      if (owner_.cleanup_) {
        clean_up(made);
        replace_all(made, owner_.delimiter_, " ");
      }
      if (!made.empty()) sink({made, true, true});
    }

   private:
    const CtcStep& owner_;
    std::string last_;
    bool has_last_ = false;
  };

  std::string pad_, delimiter_;
  bool cleanup_;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

DecodeChain::DecodeChain(const DecodeSteps& steps, bool goes_on) {
  for (const DecodeStepPtr& step : steps) runs_.push_back(step->start(goes_on));
}

void DecodeChain::feed(size_t step, TokenPart part, std::string& out) {
  if (step == runs_.size()) {
    out += part.text;
    return;
  }
  runs_[step]->push(part, [&](TokenPart made) { feed(step + 1, made, out); });
}

void DecodeChain::push(std::string_view token, std::string& out) {
  feed(0, {token, true, true}, out);
}

void DecodeChain::finish(bool goes_on, std::string& out) {
  for (size_t step = 0; step < runs_.size(); ++step) {
    runs_[step]->finish(goes_on, [&](TokenPart made) { feed(step + 1, made, out); });
  }
}

DecodeStepPtr make_byte_level_decoder() {
  return each_token("ByteLevel", [](std::string& token, bool) {
    if (auto bytes = ByteAlphabet::get().decode(token)) token = std::move(*bytes);
  });
}

DecodeStepPtr make_metaspace_decoder(std::string replacement, bool drops_first) {
  std::string what = "Metaspace " + quote_name(replacement) + (drops_first ? " prefix" : "");
  return each_token(std::move(what),
                    [mark = std::move(replacement), drops_first](std::string& token, bool first) {
                      replace_all(token, mark, first && drops_first ? "" : " ");
                    });
}

DecodeStepPtr make_wordpiece_decoder(std::string prefix, bool cleanup) {
  std::string what = "WordPiece " + quote_name(prefix) + (cleanup ? " cleanup" : "");
  return each_token(std::move(what),
                    [prefix = std::move(prefix), cleanup](std::string& token, bool first) {
                      if (!first) {
                        if (token.starts_with(prefix)) {
                          token.erase(0, prefix.size());
                        } else {
                          token.insert(0, 1, ' ');
                        }
                      }
                      if (cleanup) clean_up(token);
                    });
}

DecodeStepPtr make_bpe_decoder(std::string suffix) {
  return std::make_unique<BpeSuffixStep>(std::move(suffix));
}

DecodeStepPtr make_byte_fallback_decoder() {
  return each_token("ByteFallback", [](std::string& token, bool) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return;
    const int high = hex_digit(token[3]), low = hex_digit(token[4]);
    if (high >= 0 && low >= 0) token.assign(1, static_cast<char>(high * 16 + low));
  });
}

DecodeStepPtr make_fuse_decoder() {
  return std::make_unique<FuseStep>();
}

DecodeStepPtr make_strip_decoder(std::string content, size_t start, size_t stop) {
  return std::make_unique<StripStepDecoder>(std::move(content), start, stop);
}

DecodeStepPtr make_replace_decoder(std::unique_ptr<const TextStep> step) {
  std::string what = step->describe();
  return each_token(std::move(what), [step = std::shared_ptr<const TextStep>(std::move(step))](
                                         std::string& token, bool) { step->apply(token); });
}

DecodeStepPtr make_ctc_decoder(std::string pad, std::string delimiter, bool cleanup) {
  return std::make_unique<CtcStep>(std::move(pad), std::move(delimiter), cleanup);
}

DecodeStepPtr make_joining_decoder() {
  return each_token("spaces between", [](std::string& token, bool first) {
    if (!first) token.insert(0, 1, ' ');
  });
}

}  // namespace headrace::text
