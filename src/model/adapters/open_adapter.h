// Opens LoRA adapters in the two forms they are spread in: GGUF, as llama.cpp writes it, and PEFT's
// directories of adapter_config.json and adapter_model.safetensors.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "model/adapters/adapter.h"

namespace headrace {

/// Opens the adapter at `path`, for the model of `base`: a GGUF file, a directory, or one of the
/// two files in it. `name`: what it is called. Whether its weights' shapes are the model's is for
/// load_model to see. Errors begin with `path` and name key or tensor: not_found, mismatch (of
/// another architecture, or of weights that it does not have), unsupported (another kind of
/// adapter, embeddings, biases), corrupt_data.
Result<Adapter> open_adapter(const std::string& path, std::string name, const Checkpoint& base);

// The two forms.
Result<Adapter> open_gguf_adapter(const std::string& path, std::string_view architecture);
Result<Adapter> open_peft_adapter(const std::string& path, std::string_view architecture);

/// What was brought to another format.
using AdapterCopies = std::deque<std::vector<std::byte>>;

/// The second form, from adapter_config.json's text and adapter_model.safetensors' bytes. The
/// adapter's tensors lie in `weights` and in `copies`, which must outlive it.
Result<Adapter> read_peft_adapter(std::string_view config, std::span<const std::byte> weights,
                                  std::string_view architecture, AdapterCopies& copies);

/// Whether both are matrices of one rank. Errors: corrupt_data.
Result<void> check_pair(const AdapterPair& pair);
/// alpha / by. Error: corrupt_data, where that is no finite number of 32 bits.
Result<float> scale_of(double alpha, double by);

/// Takes a pair that was checked to its place by name. Error: corrupt_data (a weight twice).
Result<void> add_pair(Adapter& adapter, AdapterPair pair);

}  // namespace headrace
