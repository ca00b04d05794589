// From a model and options to a running engine.
#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/saturating.h"
#include "engine/backend_runner.h"
#include "engine/engine_impl.h"
#include "engine/kv_memory.h"
#include "model/model.h"

namespace headrace {
namespace {

Result<void> check_option(std::string_view name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return Error{ErrorCode::out_of_range,
               "expected " + std::to_string(min) + " to " + std::to_string(max) + ", found " +
                   std::to_string(value),
               std::string(name), ""};
}

}  // namespace

Result<EngineOptions> completed_options(EngineOptions options, const ModelInfo& model) {
  constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
  if (options.context == 0) options.context = model.context_length;
  HEADRACE_TRY(check_option("context", options.context, 2, kMaxTokens));
  HEADRACE_TRY(check_option("max_sequences", options.max_sequences, 1, 4096));
  HEADRACE_TRY(check_option("chunk_tokens", options.chunk_tokens, 1, 65536));
  HEADRACE_TRY(check_option("block_tokens", options.block_tokens, kKeyPanelTokens, 1024));
  if (options.block_tokens % kKeyPanelTokens != 0) {
    return Error{ErrorCode::out_of_range,
                 "expected a multiple of " + std::to_string(kKeyPanelTokens) + ", found " +
                     std::to_string(options.block_tokens),
                 "block_tokens", ""};
  }
  if (options.kv_tokens == 0) {
    options.kv_tokens = std::max(options.max_sequences * options.context, 2 * options.block_tokens);
  }
  HEADRACE_TRY(check_option("kv_tokens", options.kv_tokens, 2 * options.block_tokens,
                            std::numeric_limits<int64_t>::max() / 2));
  HEADRACE_TRY(check_option("max_waiting", options.max_waiting, 1, 1 << 20));
  HEADRACE_TRY(check_option("max_waiting_tokens", options.max_waiting_tokens, 0,
                            std::numeric_limits<int64_t>::max()));
  HEADRACE_TRY(
      check_option("max_logprobs", options.max_logprobs, 0, std::numeric_limits<int32_t>::max()));
  HEADRACE_TRY(check_option("max_unread_bytes", options.max_unread_bytes, 1,
                            std::numeric_limits<int64_t>::max() / 2));
  HEADRACE_TRY(check_option("max_wait_ms", options.max_wait_ms, 0, 3'600'000));
  HEADRACE_TRY(check_option("aging_ms", options.aging_ms, 1, 3'600'000));
  if (!(options.max_slowdown == 0 || options.max_slowdown > 1)) {
    return Error{ErrorCode::out_of_range, "expected 0 (no bound) or more than 1", "max_slowdown",
                 ""};
  }
  options.chunk_tokens = std::max(options.chunk_tokens, options.max_sequences);
  if (model.is_encoder) {
    // A step holds whole texts, and their keys live for that step alone.
    options.chunk_tokens = std::max(options.chunk_tokens, options.context);
    options.kv_tokens = std::max(options.chunk_tokens, 2 * options.block_tokens);
    options.kv_bytes = 0;
  }
  return options;
}

std::vector<int64_t> engine_blocks(const EngineOptions& options,
                                   std::span<const CacheGeometry> geometries) {
  std::vector<int64_t> out;
  const int64_t longest = std::min(options.context, options.kv_tokens);
  for (const CacheGeometry& geometry : geometries) {
    const int64_t one = max_blocks_held(geometry, longest, options.chunk_tokens);
    // Sequences that share kv_tokens waste at most part of a block each. Bytes are bytes.
    const int64_t parts = options.kv_bytes > 0 ? 0 : options.max_sequences - 1;
    const int64_t shared = ceil_div(options.kv_tokens, geometry.block_tokens) + parts;
    // A window's blocks are few; as many again keep the ends of prefixes for later.
    const bool keeps_more =
        geometry.window > 0 && options.prefix_cache && options.max_sequences > 1;
    const int64_t most = options.max_sequences * one * (keeps_more ? 2 : 1);
    out.push_back(std::max(one, std::min(shared, most)));
  }
  return out;
}

uint64_t engine_kv_bytes(EngineOptions options, int64_t kv_tokens,
                         std::span<const CacheGeometry> geometries,
                         std::span<const uint64_t> block_bytes) {
  options.kv_tokens = kv_tokens;
  const auto blocks = engine_blocks(options, geometries);
  uint64_t bytes = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    bytes = saturating_add(bytes, saturating_mul(static_cast<uint64_t>(blocks[i]), block_bytes[i]));
  }
  return bytes;
}

int64_t tokens_that_fit(const EngineOptions& options, std::span<const CacheGeometry> geometries,
                        std::span<const uint64_t> block_bytes) {
  const auto fits = [&](int64_t tokens) {
    return engine_kv_bytes(options, tokens, geometries, block_bytes) <= options.kv_bytes;
  };
  if (fits(options.kv_tokens)) return options.kv_tokens;
  int64_t low = 0;  // blocks that fit
  int64_t high = ceil_div(options.kv_tokens, options.block_tokens);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle * options.block_tokens) ? low : high) = middle;
  }
  return low * options.block_tokens;
}

int64_t kv_capacity(std::span<const CacheGeometry> geometries, std::span<const int64_t> num_blocks,
                    int64_t chunk_tokens) {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < geometries.size(); ++i) {
    const int64_t all = num_blocks[i] * geometries[i].block_tokens;
    constexpr int64_t kLong = int64_t{1} << 40;
    const bool slides = geometries[i].window > 0 &&
                        max_blocks_held(geometries[i], kLong, chunk_tokens) <= num_blocks[i];
    if (!slides) most = std::min(most, all);
  }
  return most;
}

Result<std::unique_ptr<Engine>> make_engine(Model& model, const EngineOptions& wanted) {
  HEADRACE_ASSIGN(EngineOptions options, completed_options(wanted, model.info()));
  const auto geometries = cache_geometries(model, options.block_tokens);
  const auto bytes = block_bytes(model, options.kv_type, options.block_tokens);
  if (options.kv_bytes > 0) {
    options.kv_tokens = tokens_that_fit(options, geometries, bytes);
    if (options.kv_tokens < 2 * options.block_tokens) {
      const uint64_t least = engine_kv_bytes(options, 2 * options.block_tokens, geometries, bytes);
      return Error{ErrorCode::resource_exhausted,
                   "a KV cache of " + std::to_string(options.kv_bytes) +
                       " bytes does not hold two blocks of " +
                       std::to_string(options.block_tokens) + " tokens",
                   "kv_bytes", "give " + std::to_string(least) + " or more"};
    }
  }
  const auto num_blocks = engine_blocks(options, geometries);
  for (const int64_t count : num_blocks) {
    HEADRACE_TRY(check_option("kv blocks", count, 0, std::numeric_limits<int32_t>::max()));
  }
  try {
    const auto clock = std::make_shared<SystemClock>();
    const BackendRunnerOptions runner_options{.kv_type = options.kv_type,
                                              .block_tokens = options.block_tokens,
                                              .max_step_rows = options.chunk_tokens,
                                              .max_sequences = options.max_sequences};
    model.set_context(options.context);
    EngineParts parts;
    parts.runner = std::make_unique<BackendRunner>(model, runner_options, num_blocks, *clock);
    parts.clock = clock;
    parts.random = std::make_shared<SystemRandom>();
    auto engine =
        std::make_unique<EngineImpl>(std::move(parts), options, geometries, num_blocks, bytes);
    engine->start();
    return std::unique_ptr<Engine>(std::move(engine));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted,
                 "there is not enough memory for a cache of " + std::to_string(options.kv_tokens) +
                     " tokens",
                 "", "give a smaller context with -c"};
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 std::string("cannot start the engine's thread: ") + fault.what(), "",
                 "ask for fewer threads with -t"};
  }
}

}  // namespace headrace
