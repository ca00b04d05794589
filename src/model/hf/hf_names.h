// Finds the rule for a tensor's Hugging Face name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/hf/hf_model.h"

namespace headrace {

/// Where a tensor goes.
struct HfPlace {
  std::string gguf;  ///< GGUF's name with its ending; empty where nothing reads the tensor
  HfChange change = HfChange::none;
  int64_t row = 0;  ///< HfChange::stack: which row of the whole it is
};

/// Later rules win. Nothing where no rule fits.
std::optional<HfPlace> place_hf_tensor(std::span<const HfName> rules, std::string_view name);

/// The other way: the Hugging Face name (in `gguf`) of the tensor that has this name of GGUF's, by
/// a rule that leads back to it. `row` is what a rule of HfChange::stack needs besides; -1: none is
/// asked. Nothing where no rule fits.
std::optional<HfPlace> place_gguf_tensor(std::span<const HfName> rules, std::string_view name,
                                         int64_t row);

/// The same of any of the names that the tensor may have as part of a causal language model: its
/// own, without the wrapping of a model that also sees, or with the prefix that a bare base model
/// lacks.
std::optional<HfPlace> find_hf_place(std::span<const HfName> rules, const std::string& name);

}  // namespace headrace
