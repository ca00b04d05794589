// The runner of real models. Owns the KV pages. Must not know who owns which block.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/kv_memory.h"
#include "engine/runner.h"
#include "model/model.h"
#include "sampling/sampler.h"

namespace headrace {

struct BackendRunnerOptions {
  KvType kv_type = KvType::f16;
  int64_t block_tokens = 16;
  int64_t max_step_rows = 256;
  int64_t max_sequences = 1;
};

class BackendRunner final : public ModelRunner {
 public:
  /// `model` and `clock` must outlive the runner. `num_blocks`: one number a cache group. Throws
  /// std::bad_alloc.
  BackendRunner(Model& model, const BackendRunnerOptions& options,
                std::span<const int64_t> num_blocks, const Clock& clock);

  const ModelInfo& info() const override { return model_.info(); }
  int64_t max_logit_rows() const override { return max_logit_rows_; }
  void launch(Batch& batch) override;
  Result<void> collect(Batch& batch) override;
  std::string device() const override { return model_.backend().description(); }
  uint64_t block_bytes(size_t group) const override { return memory_.block_bytes(group); }
  void read_block(size_t group, int32_t block, int64_t num_tokens,
                  std::span<std::byte> out) const override {
    memory_.read_block(group, block, num_tokens, out);
  }
  void write_block(size_t group, int32_t block, std::span<const std::byte> in) override {
    memory_.write_block(group, block, in);
  }

 private:
  void pool(Batch& batch);
  /// Sets adapters_.
  void gather_adapters(const Batch& batch);
  void add_to_pool(const BatchSequence& part);

  Model& model_;
  const Clock& clock_;
  const int64_t max_logit_rows_;
  KvMemory memory_;
  const Batch* batch_ = nullptr;  ///< of the step under way
  bool is_given_up_ = false;
  const std::function<bool()> is_unwanted_;
  Tensor logits_;    ///< [rows with logits, vocab] of the step under way
  Tensor embedded_;  ///< [rows that are pooled, embedding] of the step under way
  // Reused from step to step.
  std::vector<StepCache> caches_;
  std::vector<AdapterRows> adapters_;  ///< rows in order
  std::vector<int32_t> class_rows_;    ///< of Batch::embedding_rows, those of scores
  std::vector<float> row_;
  Sampler sampler_;
};

}  // namespace headrace
