// The runner of real models. Owns the KV pages. Must not know who owns which block.
#pragma once

#include <cstdint>
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

 private:
  Model& model_;
  const Clock& clock_;
  const int64_t max_logit_rows_;
  KvMemory memory_;
  Tensor logits_;  ///< [rows with logits, vocab] of the step under way
  // Reused from step to step.
  std::vector<StepCache> caches_;
  Sampler sampler_;
};

}  // namespace headrace
