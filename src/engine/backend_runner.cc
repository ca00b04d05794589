// See backend_runner.h.
#include "engine/backend_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headrace {

BackendRunner::BackendRunner(Model& model, const BackendRunnerOptions& options,
                             std::span<const int64_t> num_blocks, const Clock& clock)
    : model_(model),
      clock_(clock),
      memory_(model, options.kv_type, options.block_tokens, num_blocks) {
  model_.reserve(options.max_step_rows, options.max_sequences);
  best_.resize(static_cast<size_t>(options.max_sequences));
  row_.resize(static_cast<size_t>(model.info().vocab_size));
}

void BackendRunner::launch(Batch& batch) {
  caches_.clear();
  for (size_t i = 0; i < batch.caches.size(); ++i) {
    caches_.push_back({memory_.layers(i), batch.caches[i]});
  }
  logits_ = model_.forward({.tokens = batch.tokens,
                            .positions = batch.positions,
                            .logit_rows = batch.logit_rows,
                            .caches = caches_});
}

void BackendRunner::collect(Batch& batch) {
  const auto is_plain = [](const BatchSample& sample) {
    return sample.sequence->chain.argmax_is_enough(sample.sequence->num_generated());
  };
  const std::span best(best_.data(), batch.samples.size());
  const int64_t start_ns = clock_.now_ns();
  if (std::any_of(batch.samples.begin(), batch.samples.end(), is_plain)) {
    model_.backend().argmax_rows(logits_, best);
  }
  const int64_t argmax_ns = clock_.now_ns() - start_ns;
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    BatchSample& sample = batch.samples[i];
    const auto row = static_cast<int64_t>(i);
    if (is_plain(sample)) {
      take_argmax(sample, row, best[i]);
      sample.sampling_ns = argmax_ns;
    } else {
      const int64_t from_ns = clock_.now_ns();
      choose(sample, row);
      sample.sampling_ns = clock_.now_ns() - from_ns;
    }
  }
}

void BackendRunner::take_argmax(BatchSample& sample, int64_t row, TokenId best) {
  float value = NAN;
  if (best >= 0) {
    Tensor one = logits_.slice_rows(row, 1);
    one.data =
        static_cast<std::byte*>(one.data) + static_cast<size_t>(best) * dtype_bytes(one.dtype);
    one.cols = 1;
    model_.backend().read_row(one, 0, {&value, 1});
  }
  if (std::isfinite(value)) {
    sample.token.id = best;
  } else {
    choose(sample, row);  // for its error message
  }
}

void BackendRunner::choose(BatchSample& sample, int64_t row) {
  model_.backend().read_row(logits_, row, row_);
  const Sequence& sequence = *sample.sequence;
  auto token =
      sequence.chain.choose(row_, {sequence.tokens, sequence.num_prompt_tokens()}, scratch_);
  if (token.ok()) {
    sample.token = std::move(token).value();
  } else {
    sample.error = std::move(token).error();
  }
}

}  // namespace headrace
