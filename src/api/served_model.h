// What has to be known of a loaded model to answer requests with it. Must not know how it is
// loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/limits.h"
#include "headrace/params.h"
#include "headrace/request.h"
#include "text/breaker_tokens.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer.h"

namespace headrace::api {

/// A LoRA adapter of a model, which requests choose by its name.
struct ServedAdapter {
  std::string name;
  std::string path;
  std::string digest;
  float strength = 1.0F;  ///< where a request says none
};

struct ServedModel {
  std::string name;
  std::string fingerprint;  ///< equal where equal requests give equal answers
  std::shared_ptr<const Tokenizer> tokenizer;
  const ChatTemplate* chat_template = nullptr;  ///< null: a base model
  int64_t vocab_size = 0;
  SamplingParams sampling;  ///< where a request says nothing
  StopParams stop;
  // Of its embeddings: see ModelInfo.
  bool is_encoder = false;
  bool normalizes = true;
  int64_t embedding_length = 0;
  int64_t num_classes = 0;
  std::vector<std::string> dry_breakers = default_breakers();  ///< where a request says nothing
  std::shared_ptr<const BreakerFinder> breakers;  ///< null: one is made for each request
  /// Tokens of prompt and answer together, so that a default of max_tokens is made to fit each
  /// prompt; 0: it stays, and the engine refuses what does not fit.
  int64_t max_context = 0;
  /// Text that cannot fit max_context for its bytes alone is refused before it is tokenised; 0:
  /// none is. See longest_token_bytes().
  int64_t longest_token_bytes = 0;
  RequestLimits limits;
  bool may_stream = true;
  /// A request that names another model is answered too, with a warning; else it is an error.
  bool answers_any_name = false;
  /// What may answer in its place where the request allows it and there is no room; "": none.
  std::string lighter_name{};
  std::vector<ServedAdapter> adapters{};       ///< by their index in the engine
  std::vector<AdapterUse> default_adapters{};  ///< where a request chooses none

  /// Of that name; -1: there is none.
  int32_t find_adapter(std::string_view adapter) const;
};

}  // namespace headrace::api
