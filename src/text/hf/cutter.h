// A step of a pre-tokeniser: cuts a piece of text into smaller ones. Must not know vocabularies.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace headrace::text {

/// Takes the pieces of a step: the text, and whether it is the beginning of the whole text.
using PieceSink = FunctionRef<void(std::string_view, bool)>;

class Cutter {
 public:
  virtual ~Cutter() = default;
  /// Calls `sink` for the pieces in order; none is empty. `buffer` is scratch for pieces that are
  /// not parts of `text`, and may be in use until the next call. May throw EncodeFault.
  virtual void cut(std::string_view text, bool first, std::string& buffer,
                   PieceSink sink) const = 0;
  /// What it is and does, in words that two equal steps share and two different ones do not.
  virtual std::string describe() const = 0;
};

using CutterPtr = std::unique_ptr<const Cutter>;
using Cutters = std::vector<CutterPtr>;

}  // namespace headrace::text
