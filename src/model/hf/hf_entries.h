// Which tensors of a Hugging Face directory are which of GGUF's, and what each is made of. Must not
// know metadata.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_directory.h"
#include "headrace/result.h"
#include "model/hf/hf_model.h"
#include "model/hf/hf_quantized.h"
#include "model/hf/hf_tensor.h"

namespace headrace {

/// A quantised module's tensors, by QuantPart.
using QuantIndices = std::array<std::optional<uint32_t>, kNumQuantParts>;

/// What a tensor is made of. Indices are of HfDirectory::tensors().
struct HfMade {
  HfChange change = HfChange::none;
  HfChangeContext context = {};
  std::vector<uint32_t> parts;                 ///< none, and not quantised: `bytes` is all there is
  std::optional<QuantIndices> quantized = {};  ///< set for the weight of a quantised module
  mutable std::vector<std::byte> bytes = {};   ///< empty until it is read, and again once released
};

/// A tensor and what it is made of, if it is.
struct HfEntry {
  CheckpointTensor tensor;
  std::optional<HfMade> made;
};

/// The directory's tensors under their GGUF names, with those that the model holds in another form.
/// `is_wrapped`: the language model is a part of one that also sees or hears. Reads the scales of
/// quantised weights, nothing else of the data. Errors name the tensor: corrupt_data, mismatch,
/// unsupported.
Result<std::vector<HfEntry>> place_hf_tensors(const HfDirectory& directory, HfModel& model,
                                              const HfQuantization& quantization, bool is_wrapped);

/// The tensor's bytes in its format. Errors: what it is made of cannot be read.
Result<std::vector<std::byte>> make_hf_tensor(const HfDirectory& directory,
                                              const HfQuantization& quantization,
                                              const HfMade& made);

}  // namespace headrace
