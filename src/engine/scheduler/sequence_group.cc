// See sequence_group.h. Each sequence has its blocks from the start, the same in every cache group,
// so that the tables never change.
#include "engine/scheduler/sequence_group.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/checked.h"
#include "engine/kv_memory.h"
#include "model/model.h"

namespace headrace {
namespace {

class SequenceGroupImpl final : public SequenceGroup {
 public:
  SequenceGroupImpl(Model& model, const SequenceGroupOptions& options)
      : model_(model), chunk_tokens_(options.chunk_tokens) {
    int32_t num_blocks = 0;
    for (const int64_t max_tokens : options.max_tokens) {
      Member& member = members_.emplace_back();
      member.max_tokens = max_tokens;
      member.blocks.resize(static_cast<size_t>(ceil_div(max_tokens, options.block_tokens)));
      std::iota(member.blocks.begin(), member.blocks.end(), num_blocks);
      num_blocks += static_cast<int32_t>(member.blocks.size());
    }
    const size_t num_groups = cache_geometries(model, options.block_tokens).size();
    memory_ = std::make_unique<KvMemory>(model, options.kv_type, options.block_tokens,
                                         std::vector<int64_t>(num_groups, num_blocks));
    kv_sequences_.reserve(members_.size());
    caches_.resize(num_groups);
    const auto num_members = static_cast<int64_t>(members_.size());
    model.reserve(std::max(chunk_tokens_, num_members), num_members);
  }

  int64_t num_tokens(size_t sequence) const override { return members_.at(sequence).num_tokens; }

  Result<TokenId> feed(size_t sequence, std::span<const TokenId> tokens) override {
    HEADRACE_CHECK(!tokens.empty());
    Member& member = members_.at(sequence);
    HEADRACE_TRY(check(member, tokens));
    TokenId best = -1;
    while (!tokens.empty()) {
      const auto rows = std::min(static_cast<size_t>(chunk_tokens_), tokens.size());
      begin_step();
      add_rows(member, tokens.first(rows));
      tokens = tokens.subspan(rows);
      if (tokens.empty()) logit_rows_.push_back(static_cast<int32_t>(rows - 1));
      HEADRACE_TRY(run_step({&best, logit_rows_.size()}));
    }
    return best;
  }

  Result<void> decode(std::span<TokenId> tokens) override {
    HEADRACE_CHECK_LE(tokens.size(), members_.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      HEADRACE_TRY(check(members_[i], tokens.subspan(i, 1)));
    }
    begin_step();
    for (size_t i = 0; i < tokens.size(); ++i) {
      logit_rows_.push_back(static_cast<int32_t>(i));
      add_rows(members_[i], tokens.subspan(i, 1));
    }
    return run_step(tokens);
  }

  void rewind(size_t sequence, int64_t num_tokens) override {
    Member& member = members_.at(sequence);
    HEADRACE_CHECK(num_tokens >= 0 && num_tokens <= member.num_tokens);
    member.num_tokens = num_tokens;
  }

 private:
  struct Member {
    int64_t max_tokens = 0;
    int64_t num_tokens = 0;
    std::vector<int32_t> blocks;
  };

  Result<void> check(const Member& member, std::span<const TokenId> tokens) const {
    const int64_t total = member.num_tokens + static_cast<int64_t>(tokens.size());
    if (total > member.max_tokens) {
      return Error{ErrorCode::context_length_exceeded,
                   std::to_string(total) + " tokens do not fit the context of " +
                       std::to_string(member.max_tokens),
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
    return {};
  }

  void begin_step() {
    tokens_.clear();
    positions_.clear();
    logit_rows_.clear();
    kv_sequences_.clear();
  }

  void add_rows(Member& member, std::span<const TokenId> tokens) {
    const auto first_row = static_cast<int64_t>(tokens_.size());
    const auto rows = static_cast<int64_t>(tokens.size());
    kv_sequences_.push_back({first_row, rows, member.num_tokens, member.blocks});
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    for (int64_t i = 0; i < rows; ++i) {
      positions_.push_back(static_cast<int32_t>(member.num_tokens + i));
    }
    member.num_tokens += rows;
  }

  /// best [logit rows]: the most likely token of each.
  Result<void> run_step(std::span<TokenId> best) {
    for (size_t i = 0; i < caches_.size(); ++i) caches_[i] = {memory_->layers(i), kv_sequences_};
    const Tensor logits = model_.forward({.tokens = tokens_,
                                          .positions = positions_,
                                          .logit_rows = logit_rows_,
                                          .caches = caches_,
                                          .num_top = 1});
    HEADRACE_TRY(model_.check_weights());
    if (best.empty()) return {};
    model_.backend().argmax_rows(logits, best);
    if (std::find(best.begin(), best.end(), -1) == best.end()) return {};
    return Error{ErrorCode::internal, "the model's logits are no numbers", "",
                 "the file may be damaged: headrace selftest -m FILE"};
  }

  Model& model_;
  const int64_t chunk_tokens_;
  std::vector<Member> members_;
  std::unique_ptr<KvMemory> memory_;
  // Of the current step.
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> logit_rows_;
  std::vector<KvSequence> kv_sequences_;
  std::vector<StepCache> caches_;
};

}  // namespace

std::unique_ptr<SequenceGroup> make_sequence_group(Model& model,
                                                   const SequenceGroupOptions& options) {
  HEADRACE_CHECK(!options.max_tokens.empty());
  HEADRACE_CHECK_GT(options.chunk_tokens, 0);
  return std::make_unique<SequenceGroupImpl>(model, options);
}

}  // namespace headrace
