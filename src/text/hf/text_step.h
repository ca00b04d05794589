// A step of a normaliser: text to text. Must not know vocabularies.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace headrace::text {

class TextStep {
 public:
  virtual ~TextStep() = default;
  /// Changes `text`. Ill-formed bytes stay as they are. Time is linear. May throw EncodeFault.
  virtual void apply(std::string& text) const = 0;
  /// What it is and does, in words that two equal steps share and two different ones do not.
  virtual std::string describe() const = 0;
};

using TextSteps = std::vector<std::unique_ptr<const TextStep>>;

}  // namespace headrace::text
