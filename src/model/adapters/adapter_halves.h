// The two tensors of each weight that an adapter changes, found by their names in whatever kind of
// file. Must not know how a kind of file spells them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/quote_name.h"
#include "headrace/result.h"

namespace headrace {

/// What a tensor's name says.
struct HalfName {
  std::string weight;  ///< in the words of its kind of files, without an ending
  bool is_a = false;
};

/// How names of the two end, after the weight's.
struct HalfEndings {
  std::string_view a;
  std::string_view b;
};

/// Both are there.
template <class Tensor>
struct AdapterHalves {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
};

/// Pairs the tensors, each of which has a `name`; they must outlive the result, which is by weight.
/// `parse` is called with a name and gives a std::optional<HalfName>. Errors: unsupported (a name
/// that is neither's), corrupt_data (a half is there twice, or not at all).
template <class Tensor, class Parse>
Result<std::map<std::string, AdapterHalves<Tensor>>> pair_halves(std::span<const Tensor> tensors,
                                                                 const HalfEndings& endings,
                                                                 Parse parse) {
  std::map<std::string, AdapterHalves<Tensor>> out;
  for (const Tensor& tensor : tensors) {
    const std::optional<HalfName> name = parse(tensor.name);
    if (!name) {
      return Error{ErrorCode::unsupported,
                   "expected a name that ends in " + std::string(endings.a) + " or " +
                       std::string(endings.b),
                   "tensor " + quote_name(tensor.name),
                   "changes of embeddings, biases and whole modules are not built in"};
    }
    AdapterHalves<Tensor>& halves = out[name->weight];
    const Tensor*& half = name->is_a ? halves.a : halves.b;
    if (half != nullptr) {
      return Error{ErrorCode::corrupt_data, "is there twice, under different names",
                   "tensor " + quote_name(tensor.name), ""};
    }
    half = &tensor;
  }
  for (const auto& [weight, halves] : out) {
    if (halves.a != nullptr && halves.b != nullptr) continue;
    const std::string_view missing = halves.a == nullptr ? endings.a : endings.b;
    return Error{ErrorCode::corrupt_data,
                 "there is no tensor " + quote_name(weight + std::string(missing)),
                 "weight " + quote_name(weight), "the file is incomplete"};
  }
  return out;
}

}  // namespace headrace
