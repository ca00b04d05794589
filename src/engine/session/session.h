// One sequence, run synchronously: what scoring, perplexity and self-tests need. Owns its KV
// blocks. Must not know text, JSON or sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kv_view.h"
#include "base/function_ref.h"
#include "headrace/params.h"
#include "headrace/request.h"
#include "headrace/result.h"

namespace headrace {

class Model;

struct SessionOptions {
  KvType kv_type = KvType::f16;
  int64_t max_tokens = 2048;  ///< KV is reserved for this many
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 256;          ///< rows of one step
  std::vector<AdapterUse> adapters{};  ///< that all tokens use
};

enum class LogitsFor { none, last, all };

class Session {
 public:
  virtual ~Session() = default;

  /// Appends tokens. `on_logits(position, logits [vocab])` is called in order for the asked rows;
  /// the logits of a position predict the next one and are valid during the call only.
  /// Errors: context_length_exceeded, an id outside the vocabulary, Model::check_weights (the step
  /// is then as if it had not been).
  virtual Result<void> feed(std::span<const TokenId> tokens, LogitsFor wanted,
                            FunctionRef<void(int64_t, std::span<const float>)> on_logits) = 0;

  /// Forgets all tokens and gives the blocks back.
  virtual void reset() = 0;
  virtual int64_t num_tokens() const = 0;
};

/// `model` must outlive the session. Throws std::bad_alloc.
std::unique_ptr<Session> make_session(Model& model, const SessionOptions& options);

}  // namespace headrace
