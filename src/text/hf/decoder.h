// Tokens to text as they come, in steps. Must not know vocabularies, nor UTF-8 that is cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace headrace::text {

/// A part of a token's text: whether a token begins with it, and whether it ends with it.
struct TokenPart {
  std::string_view text;
  bool begins = true;
  bool ends = true;
};
using PartSink = FunctionRef<void(TokenPart)>;

/// One use of a step of a decoder.
class DecodeRun {
 public:
  virtual ~DecodeRun() = default;
  virtual void push(TokenPart part, PartSink sink) = 0;
  /// What is still held back. With `goes_on` more tokens would follow.
  virtual void finish(bool goes_on, PartSink sink) = 0;
};

/// A step of a decoder, as the file describes it.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  /// With `goes_on` other tokens came before.
  virtual std::unique_ptr<DecodeRun> start(bool goes_on) const = 0;
  virtual std::string describe() const = 0;
};

using DecodeStepPtr = std::unique_ptr<const DecodeStep>;
using DecodeSteps = std::vector<DecodeStepPtr>;

/// All steps, one after the other.
class DecodeChain {
 public:
  DecodeChain(const DecodeSteps& steps, bool goes_on);
  /// Appends to `out` what is certain.
  void push(std::string_view token, std::string& out);
  void finish(bool goes_on, std::string& out);

 private:
  void feed(size_t step, TokenPart part, std::string& out);

  std::vector<std::unique_ptr<DecodeRun>> runs_;
};

}  // namespace headrace::text
