// See backend_runner.h.
#include "engine/backend_runner.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace headrace {
namespace {

/// StepInput::num_top of a step.
int32_t num_decisive(const Batch& batch) {
  int32_t most = 0;
  for (const BatchSample& sample : batch.samples) {
    if (sample.scored_position >= 0) return 0;
    const Sequence& sequence = *sample.sequence;
    const int32_t num =
        sequence.chain.num_decisive({sequence.tokens, sequence.num_prompt_tokens()});
    if (num == 0) return 0;
    most = std::max(most, num);
  }
  return most;
}

/// Logits of many rows at a large vocabulary would dwarf the model; prompts whose tokens are scored
/// are computed in smaller pieces instead.
int64_t logit_rows_of(const BackendRunnerOptions& options, int64_t vocab_size) {
  constexpr int64_t kMaxBytes = 8 << 20;
  if (options.max_sequences == 1) return 1;
  const int64_t rows = kMaxBytes / (vocab_size * static_cast<int64_t>(sizeof(float)));
  return std::max(options.max_sequences, std::min(rows, options.max_step_rows));
}

/// A vector that is no vector must not look like one.
std::optional<Error> fault_of(std::span<const float> values, RequestKind kind) {
  const auto is_finite = [](float value) { return std::isfinite(value); };
  const bool are_finite = std::all_of(values.begin(), values.end(), is_finite);
  const bool is_null = kind == RequestKind::embed &&
                       std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
  if (are_finite && !is_null) return std::nullopt;
  return Error{ErrorCode::internal,
               are_finite ? "the model's embedding is all zeros"
                          : "the model's embedding is no numbers (NaN or infinite)",
               "", "the file may be damaged: headrace selftest -m FILE"};
}

}  // namespace

BackendRunner::BackendRunner(Model& model, const BackendRunnerOptions& options,
                             std::span<const int64_t> num_blocks, const Clock& clock)
    : model_(model),
      clock_(clock),
      max_logit_rows_(logit_rows_of(options, model.info().vocab_size)),
      memory_(model, options.kv_type, options.block_tokens, num_blocks),
      is_unwanted_([this] {  // which the model asks before each layer
        heartbeat().beat(clock_.now_ns());
        return is_given_up_ = batch_->is_unwanted();
      }),
      sampler_(model.backend(), max_logit_rows_, model.info().vocab_size) {
  model_.reserve(options.max_step_rows, max_logit_rows_);
  static_assert(kMaxRequestAdapters == kMaxAdaptersOfRow);
  if (!model.info().adapters.empty()) {
    adapters_.reserve(static_cast<size_t>(options.max_step_rows) * kMaxRequestAdapters);
  }
}

void BackendRunner::launch(Batch& batch) {
  for (const BlockCopy& copy : batch.copies) {
    memory_.copy_block(static_cast<size_t>(copy.group), copy.from, copy.to);
  }
  batch_ = &batch;
  is_given_up_ = false;
  caches_.clear();
  for (size_t i = 0; i < batch.caches.size(); ++i) {
    caches_.push_back({memory_.layers(i), batch.caches[i]});
  }
  gather_adapters(batch);
  batch.num_top = num_decisive(batch);
  logits_ = model_.forward({.tokens = batch.tokens,
                            .positions = batch.positions,
                            .logit_rows = batch.logit_rows,
                            .embedding_rows = batch.embedding_rows,
                            .token_types = batch.token_types,
                            .caches = caches_,
                            .adapters = adapters_,
                            .num_top = batch.num_top,
                            .is_unwanted = &is_unwanted_});
}

// Sequences that follow each other with the same adapter share a product.
void BackendRunner::gather_adapters(const Batch& batch) {
  adapters_.clear();
  for (const BatchSequence& part : batch.sequences) {
    const std::vector<AdapterUse>& uses = part.sequence->request->adapters;
    if (uses.size() == 1 && !adapters_.empty()) {
      AdapterRows& last = adapters_.back();
      const bool goes_on = last.adapter == uses[0].adapter && last.strength == uses[0].strength &&
                           last.first_row + last.num_rows == part.first_row;
      if (goes_on) {
        last.num_rows += part.num_rows;
        continue;
      }
    }
    for (const AdapterUse& use : uses) {
      adapters_.push_back({part.first_row, part.num_rows, use.adapter, use.strength});
    }
  }
}

// Row after row, whatever the steps: sums do not depend on how a prompt was cut.
void BackendRunner::add_to_pool(const BatchSequence& part) {
  Sequence& sequence = *part.sequence;
  const bool is_first = part.first_position == 0 || *sequence.request->pooling == Pooling::last;
  if (is_first) sequence.pooled.assign(row_.size(), 0.0);
  for (int32_t i = 0; i < part.num_embedded; ++i) {
    model_.backend().read_row(embedded_, part.first_embedded + i, row_);
    for (size_t j = 0; j < row_.size(); ++j) sequence.pooled[j] += static_cast<double>(row_[j]);
  }
}

void BackendRunner::pool(Batch& batch) {
  embedded_ = model_.embeddings();
  row_.resize(static_cast<size_t>(model_.info().embedding_length));
  class_rows_.clear();
  for (const BatchSequence& part : batch.sequences) {
    if (part.num_embedded == 0) continue;
    if (part.sequence->request->kind == RequestKind::embed) {
      add_to_pool(part);
    } else {
      class_rows_.push_back(part.first_embedded);
    }
  }
  const Tensor classes = class_rows_.empty() ? Tensor() : model_.classify(class_rows_);
  int64_t num_classified = 0;
  for (BatchEmbedding& out : batch.embeddings) {
    Sequence& sequence = *out.sequence;
    if (sequence.request->kind == RequestKind::embed) {
      const bool is_mean = *sequence.request->pooling == Pooling::mean;
      const double num_rows = is_mean ? static_cast<double>(sequence.num_prompt_tokens()) : 1.0;
      for (const double sum : sequence.pooled) {
        out.values.push_back(static_cast<float>(sum / num_rows));
      }
    } else {
      out.values.resize(static_cast<size_t>(classes.cols));
      model_.backend().read_row(classes, num_classified++, out.values);
    }
    out.error = fault_of(out.values, sequence.request->kind);
  }
}

Result<void> BackendRunner::collect(Batch& batch) {
  if (is_given_up_) return Error{ErrorCode::cancelled, "nobody wants this step", "", ""};
  HEADRACE_TRY(model_.check_weights());
  if (!batch.embedding_rows.empty() || !batch.embeddings.empty()) pool(batch);
  if (batch.samples.empty()) return {};
  const int64_t start_ns = clock_.now_ns();
  heartbeat().beat(start_ns);
  sampler_.clear();
  for (const BatchSample& sample : batch.samples) {
    Sequence& sequence = *sample.sequence;
    if (sample.scored_position >= 0) {
      sampler_.add_score(sequence.tokens[static_cast<size_t>(sample.scored_position)],
                         sequence.request->num_prompt_logprobs);
    } else {
      sampler_.add(sequence.chain, {sequence.tokens, sequence.num_prompt_tokens()});
    }
  }
  sampler_.run(logits_);
  const int64_t shared_ns = clock_.now_ns() - start_ns;
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    BatchSample& sample = batch.samples[i];
    const int64_t from_ns = clock_.now_ns();
    auto token = sampler_.choose(i);
    if (token.ok()) {
      sample.token = std::move(token).value();
    } else {
      sample.error = std::move(token).error();
    }
    sample.sampling_ns = shared_ns + clock_.now_ns() - from_ns;
  }
  batch.sampling_ns = clock_.now_ns() - start_ns;
  return {};
}

}  // namespace headrace
