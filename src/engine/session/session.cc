// See session.h. One sequence with pools of its own: the same block tables and steps as the engine,
// without its scheduler.
#include "engine/session/session.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/kv_memory.h"
#include "kv/block_table.h"
#include "model/model.h"

namespace headrace {
namespace {

// Logits of many rows at a large vocabulary would dwarf the model; feed() takes fewer rows a step.
constexpr int64_t kMaxLogitsBytes = 32 << 20;

class SessionImpl final : public Session {
 public:
  SessionImpl(Model& model, const SessionOptions& options)
      : model_(model),
        max_tokens_(options.max_tokens),
        max_rows_(std::clamp<int64_t>(options.chunk_tokens, 1, options.max_tokens)),
        max_logit_rows_(std::clamp<int64_t>(
            kMaxLogitsBytes / (model.info().vocab_size * static_cast<int64_t>(sizeof(float))), 1,
            max_rows_)) {
    const auto geometries = cache_geometries(model, options.block_tokens);
    std::vector<int64_t> num_blocks;
    groups_.reserve(geometries.size());  // tables keep the addresses of the groups
    for (const CacheGeometry& geometry : geometries) {
      num_blocks.push_back(max_blocks_held(geometry, max_tokens_, max_rows_));
      groups_.emplace_back(geometry, static_cast<int32_t>(num_blocks.back()));
      tables_.emplace_back(groups_.back(), max_tokens_);
    }
    memory_ = std::make_unique<KvMemory>(model, options.kv_type, options.block_tokens, num_blocks);
    sequences_.resize(geometries.size());
    for (size_t i = 0; i < geometries.size(); ++i) {
      caches_.push_back({memory_->layers(i), {&sequences_[i], 1}});
    }
    for (const AdapterUse& use : options.adapters) {
      adapters_.push_back({.adapter = use.adapter, .strength = use.strength});
    }
    model_.set_context(max_tokens_);
    model_.reserve(max_rows_, 1);
    row_.resize(static_cast<size_t>(model.info().vocab_size));
  }

  Result<void> feed(std::span<const TokenId> tokens, LogitsFor wanted,
                    FunctionRef<void(int64_t, std::span<const float>)> on_logits) override {
    const auto count = static_cast<int64_t>(tokens.size());
    if (count > max_tokens_ - num_tokens_) {
      return Error{ErrorCode::context_length_exceeded,
                   std::to_string(num_tokens_ + count) + " tokens do not fit the context of " +
                       std::to_string(max_tokens_),
                   "", ""};
    }
    for (const TokenId id : tokens) {
      if (id < 0 || id >= model_.info().vocab_size) {
        return Error{ErrorCode::out_of_range,
                     "token id " + std::to_string(id) + " is outside the vocabulary of " +
                         std::to_string(model_.info().vocab_size),
                     "", ""};
      }
    }
    const int64_t most = wanted == LogitsFor::all ? max_logit_rows_ : max_rows_;
    if (wanted == LogitsFor::all) model_.reserve(max_rows_, max_logit_rows_);
    for (int64_t done = 0; done < count;) {
      const int64_t rows = std::min(most, count - done);
      const bool is_last = done + rows == count;
      int64_t num_wanted = 0;
      if (wanted == LogitsFor::all) num_wanted = rows;
      if (wanted == LogitsFor::last && is_last) num_wanted = 1;
      HEADRACE_TRY(step(tokens.subspan(static_cast<size_t>(done), static_cast<size_t>(rows)),
                        num_wanted, on_logits));
      done += rows;
    }
    return {};
  }

  void reset() override {
    for (BlockTable& table : tables_) table.clear();
    num_tokens_ = 0;
  }

  int64_t num_tokens() const override { return num_tokens_; }

 private:
  // The logits of the last `num_wanted` rows go to on_logits.
  Result<void> step(std::span<const TokenId> tokens, int64_t num_wanted,
                    FunctionRef<void(int64_t, std::span<const float>)> on_logits) {
    const auto rows = static_cast<int64_t>(tokens.size());
    for (size_t i = 0; i < tables_.size(); ++i) {
      tables_[i].reclaim(num_tokens_);
      const bool grown = tables_[i].grow(num_tokens_ + rows);
      HEADRACE_CHECK(grown);
      sequences_[i] = {.first_row = 0,
                       .num_rows = rows,
                       .first_position = num_tokens_,
                       .block_table = tables_[i].blocks()};
    }
    positions_.resize(tokens.size());
    std::iota(positions_.begin(), positions_.end(), static_cast<int32_t>(num_tokens_));
    logit_rows_.resize(static_cast<size_t>(num_wanted));
    std::iota(logit_rows_.begin(), logit_rows_.end(), static_cast<int32_t>(rows - num_wanted));

    for (AdapterRows& part : adapters_) part.num_rows = rows;
    const Tensor logits = model_.forward({.tokens = tokens,
                                          .positions = positions_,
                                          .logit_rows = logit_rows_,
                                          .caches = caches_,
                                          .adapters = adapters_});
    HEADRACE_TRY(model_.check_weights());
    const int64_t first = num_tokens_ + rows - num_wanted;
    num_tokens_ += rows;
    for (int64_t i = 0; i < num_wanted; ++i) {
      model_.backend().read_row(logits, i, row_);
      on_logits(first + i, row_);
    }
    return {};
  }

  Model& model_;
  int64_t max_tokens_;
  int64_t max_rows_;
  int64_t max_logit_rows_;
  int64_t num_tokens_ = 0;
  std::vector<CacheGroup> groups_;
  std::vector<BlockTable> tables_;  // one a group
  std::unique_ptr<KvMemory> memory_;
  std::vector<KvSequence> sequences_;  // one a group
  std::vector<StepCache> caches_;
  std::vector<AdapterRows> adapters_;  // all of them of all rows
  // Of the current step.
  std::vector<int32_t> positions_;
  std::vector<int32_t> logit_rows_;
  std::vector<float> row_;
};

}  // namespace

std::unique_ptr<Session> make_session(Model& model, const SessionOptions& options) {
  HEADRACE_CHECK_GT(options.max_tokens, 0);
  return std::make_unique<SessionImpl>(model, options);
}

}  // namespace headrace
