// A LoRA adapter (arXiv:2106.09685) in GGUF's terms: for some weights of a model, two small
// matrices whose product is added to them. Must not know the model that it is used with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace headrace {

/// What is added to one weight: scale * B A. Rows of B are in the order of the weight's rows in the
/// adapter's kind of files.
struct AdapterPair {
  std::string weight;  ///< GGUF's name without ".weight": "blk.0.attn_q"
  CheckpointTensor a;  ///< [rank, cols]
  CheckpointTensor b;  ///< [rows, rank]
  float scale = 1.0F;

  int64_t rank() const { return a.shape.front(); }
  int64_t rows() const { return b.shape.front(); }
  int64_t cols() const { return a.shape.back(); }
};

struct Adapter {
  std::string name;  ///< what users call it
  std::string path;
  std::string architecture;        ///< GGUF's name of the base model's, or empty: it does not say
  std::string base_model;          ///< what it says that it was trained for, or empty
  bool keeps_rope_halves = false;  ///< see Checkpoint::keeps_rope_halves
  std::vector<AdapterPair> pairs;  ///< by weight, ascending
  std::shared_ptr<const void> files;  ///< what the tensors' bytes lie in

  /// Null if it leaves this weight as it is.
  const AdapterPair* find(std::string_view weight) const;
  /// Of all its tensors.
  uint64_t num_bytes() const;
  int64_t num_parameters() const;
  /// About what its matrices take in memory: in 32 bits, in panels of 16 rows.
  uint64_t packed_bytes() const;
  /// Hexadecimal digits that are equal for equal adapters: of names, shapes, scales and all bytes.
  std::string digest() const;
};

}  // namespace headrace
