// Attaches adapters to the products of a model while it is loaded. Owns the list of what was used
// and the faults found. Must not know a particular model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "headrace/result.h"
#include "model/adapters/adapter.h"
#include "model/adapters/adapter_memory.h"
#include "model/blocks/linear.h"

namespace headrace {

/// Which outputs of a weight of a file a product has.
struct AdaptedPart {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t whole_rows = 0;  ///< of the weight as the file has it
  int64_t cols = 0;
  /// For output row i the row of the weight in GGUF files, where that is another one than in
  /// Hugging Face's; empty: none is.
  std::span<const int32_t> gguf_order = {};
  bool makes_logits = false;  ///< it has the rows with logits, else all rows of a step
};

class AdapterLoader {
 public:
  /// Both must outlive it, the backend also what is loaded.
  AdapterLoader(std::span<const Adapter> adapters, Backend& backend);

  /// Gives `linear`, which is made of the weight `name` (GGUF's, without ".weight"), what adapters
  /// add to it. Faults are collected.
  void attach(const std::string& name, const AdaptedPart& part, Linear& linear);

  /// The first fault; else mismatch, where an adapter changes what nothing here has.
  Result<void> finish() const;

  /// What the model's steps use; null where there are no adapters.
  const std::shared_ptr<AdapterMemory>& memory() const { return memory_; }
  /// Of an adapter, packed.
  uint64_t packed_bytes(size_t adapter) const { return packed_bytes_[adapter]; }

 private:
  Result<LowRank> pack(size_t adapter, const AdapterPair& pair, const AdaptedPart& part,
                       Linear& linear);

  std::span<const Adapter> adapters_;
  Backend& backend_;
  std::shared_ptr<AdapterMemory> memory_;
  std::vector<uint64_t> packed_bytes_;
  std::vector<std::vector<bool>> was_used_;  ///< by adapter, then by pair
  std::optional<Error> error_;
};

}  // namespace headrace
