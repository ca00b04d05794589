// What goes into the engine (Request) and what comes out (Event). Token ids only: text, JSON and
// sockets belong to others. Part of the public C++ API.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/model.h"
#include "headrace/params.h"
#include "headrace/pooling.h"
#include "headrace/result.h"
#include "headrace/stats.h"
#include "headrace/timeline.h"

namespace headrace {

inline constexpr int32_t kMaxChoices = 128;
inline constexpr int32_t kMinPriority = -8;
inline constexpr int32_t kMaxPriority = 8;

/// What is asked of the engine.
enum class RequestKind : uint8_t {
  generate,  ///< completions of the prompt
  embed,     ///< one vector of the prompt: an EmbeddingEvent, then a FinishEvent
  score,     ///< what the model's classification head says of it, likewise
};

/// An adapter that a request uses.
struct AdapterUse {
  int32_t adapter = 0;    ///< index in ModelInfo::adapters
  float strength = 1.0F;  ///< what it adds is multiplied by this; 0: as if it were not used

  bool operator==(const AdapterUse&) const = default;
};

inline constexpr size_t kMaxRequestAdapters = 16;

struct Request {
  RequestKind kind = RequestKind::generate;
  std::vector<TokenId> prompt;  ///< not empty
  SamplingParams sampling;
  StopParams stop;
  /// -1: none; 0: the chosen token's; k: and the k most likely, as many as the engine allows
  int32_t num_logprobs = -1;
  /// The same of the prompt's tokens, each given those before it; the first has none. Such a
  /// request reads nothing from the prefix cache.
  int32_t num_prompt_logprobs = -1;
  int32_t num_choices = 1;  ///< completions of the one prompt, 1 to kMaxChoices
  int32_t priority = 0;     ///< kMinPriority to kMaxPriority; smaller is served first
  int64_t timeout_ms = 0;   ///< from submit to the last token; 0: none
  std::string owner;        ///< who asks; owners share the engine fairly
  /// Prefixes are shared among requests of equal scope only: API key and salt, as the caller joins
  /// them.
  std::string cache_scope;
  /// Whether a lighter model may answer where this one has no room; RequestStats::model names it.
  bool may_use_lighter_model = false;
  bool use_prefix_cache = true;  ///< else neither reads from it nor leaves anything in it
  bool keeps_timeline = false;   ///< FinishEvent::timeline tells of its steps

  /// What they add is added up, in this order; each at most once. Prefixes are shared among
  /// requests of equal adapters only.
  std::vector<AdapterUse> adapters{};

  // Of kinds embed and score, where sampling, stop, log-probabilities and choices count for
  // nothing.
  std::optional<Pooling> pooling{};  ///< of kind embed; none: the model's own
  int64_t second_text = -1;  ///< of a pair of texts, where the second begins; -1: there is one
};

enum class FinishReason { stop, length, cancelled };

/// The scope that a request's prefixes are cached in: `cache_scope`, narrowed by its adapters.
std::string prefix_scope(const std::string& cache_scope, std::span<const AdapterUse> adapters,
                         const ModelInfo& model);

/// "stop", "length", "cancelled".
std::string_view finish_reason_name(FinishReason reason);

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;  ///< natural log, of the model's distribution before any sampling step
};

/// One generated token. An end or stop token is not emitted; FinishEvent names it.
struct TokenEvent {
  TokenId id = 0;
  float logprob = 0;  ///< set if asked for
  std::vector<TokenLogprob> top;
  int32_t choice = 0;  ///< of which completion
};

struct PromptLogprob {
  TokenLogprob token;  ///< the prompt's token, given those before it
  std::vector<TokenLogprob> top;
};

/// Log-probabilities of the prompt's tokens [first_position, first_position + tokens.size()), if
/// asked for. Several of them, in order and without gaps from position 1 on, come before the first
/// token.
struct PromptLogprobsEvent {
  int64_t first_position = 1;
  std::vector<PromptLogprob> tokens;
};

/// Kind embed: the text's vector [embedding_length], pooled, neither normalised nor cut; finite,
/// and not all zeros. Kind score: one number a class [num_classes], as the head says it.
struct EmbeddingEvent {
  std::vector<float> values;
};

/// The end of one completion, embedding or score (of these: stop, or cancelled).
struct FinishEvent {
  FinishReason reason = FinishReason::stop;
  TokenId stop_token = -1;  ///< the end or stop token that ended it, or -1
  RequestStats stats;
  int32_t choice = 0;
  std::shared_ptr<const Timeline> timeline{};  ///< of this completion, where it was asked for
};

/// The end of the whole request, with all choices that had not finished.
struct ErrorEvent {
  Error error;
};

using Event =
    std::variant<TokenEvent, PromptLogprobsEvent, EmbeddingEvent, FinishEvent, ErrorEvent>;

}  // namespace headrace
