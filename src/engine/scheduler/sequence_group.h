// Several sequences that one thread feeds and decodes in steps of its own choosing: what benchmarks
// need. Owns their KV pages. Must not know scheduling, requests or text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kv_view.h"
#include "headrace/params.h"
#include "headrace/result.h"

namespace headrace {

class Model;

struct SequenceGroupOptions {
  KvType kv_type = KvType::f16;
  std::vector<int64_t> max_tokens;  ///< of each sequence, which are as many
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 256;  ///< rows of one step of feed()
};

class SequenceGroup {
 public:
  virtual ~SequenceGroup() = default;

  virtual int64_t num_tokens(size_t sequence) const = 0;

  /// Appends tokens to one sequence, in chunks. Returns the most likely token after them.
  /// Errors: context_length_exceeded, out_of_range (an id outside the vocabulary), internal (logits
  /// that are no numbers), Model::check_weights. `tokens` must not be empty.
  virtual Result<TokenId> feed(size_t sequence, std::span<const TokenId> tokens) = 0;

  /// One step: the first tokens.size() sequences get one token each, which becomes the most likely
  /// one after it. Errors: those of feed().
  virtual Result<void> decode(std::span<TokenId> tokens) = 0;

  /// Forgets what lies past the first `num_tokens` tokens of a sequence. No page of a sequence is
  /// given back to others before its end, so what is behind a window can be returned to.
  virtual void rewind(size_t sequence, int64_t num_tokens) = 0;
};

/// `model` must outlive the group. Throws std::bad_alloc.
std::unique_ptr<SequenceGroup> make_sequence_group(Model& model,
                                                   const SequenceGroupOptions& options);

}  // namespace headrace
