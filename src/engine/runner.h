// Runs a step: forward pass and choice of tokens. An interface, so that scheduler and engine are
// tested without a model.
#pragma once

#include "engine/batch.h"
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
  /// the step.
  virtual Result<void> collect(Batch& batch) = 0;
};

}  // namespace headrace
