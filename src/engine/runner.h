// Runs a step: forward pass and choice of tokens. An interface, so that scheduler and engine are
// tested without a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/heartbeat.h"
#include "engine/scheduler/batch.h"
#include "headrace/model.h"
#include "headrace/result.h"

namespace headrace {

class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual const ModelInfo& info() const = 0;
  /// Rows of a step that may have logits.
  virtual int64_t max_logit_rows() const = 0;
  /// Starts the forward pass; a device may still be at work on return.
  virtual void launch(Batch& batch) = 0;
  /// Waits for it and fills in token or error of each sample. An error is one of all sequences of
  /// the step; cancelled: nobody wanted the step any more (Batch::is_unwanted), and it was given
  /// up.
  virtual Result<void> collect(Batch& batch) = 0;

  // Blocks outside of the runner: KvStorage::read_block. Between two steps only.
  /// What computes them, the instruction set included.
  virtual std::string device() const = 0;
  virtual uint64_t block_bytes(size_t group) const = 0;
  /// The first `num_tokens` slots of a block. `out`: [block_bytes].
  virtual void read_block(size_t group, int32_t block, int64_t num_tokens,
                          std::span<std::byte> out) const = 0;
  virtual void write_block(size_t group, int32_t block, std::span<const std::byte> in) = 0;

  /// Beaten by the engine when a step begins, and by the runner after each layer of it, so that a
  /// long step can be told from a stuck one.
  Heartbeat& heartbeat() { return heartbeat_; }
  const Heartbeat& heartbeat() const { return heartbeat_; }

 private:
  Heartbeat heartbeat_;
};

}  // namespace headrace
