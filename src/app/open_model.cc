// See open_model.h.
#include "app/open_model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/model_files.h"
#include "app/model_fingerprint.h"
#include "app/open_stages.h"
#include "engine/engine_impl.h"

namespace headrace {

namespace fs = std::filesystem;

Result<void> check_options(const OpenOptions& options) {
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message), "", ""};
  };
  if (options.num_threads < 0 || options.num_threads > 1024) {
    return wrong("the number of threads must be in 1..1024, got " +
                 std::to_string(options.num_threads));
  }
  if (options.context < 0 || options.context == 1) {
    return wrong("the context must be 2 tokens or more, or 0 for what fits, got " +
                 std::to_string(options.context));
  }
  if (options.block_tokens < 16 || options.block_tokens > 256 || options.block_tokens % 16 != 0) {
    return wrong("a KV block must be 16 to 256 tokens and a multiple of 16, got " +
                 std::to_string(options.block_tokens));
  }
  if (options.chunk_tokens < 1 || options.chunk_tokens > 8192) {
    return wrong("a prompt chunk must be 1 to 8192 tokens, got " +
                 std::to_string(options.chunk_tokens));
  }
  HEADRACE_TRY(quantization_of(options));
  HEADRACE_ASSIGN(const Isa isa, isa_of(options));
  HEADRACE_TRY(kv_type_of(options, isa));
  return {};
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path,
                                                        const std::string& pre_tokenizer) {
  const TokenizerOptions options{pre_tokenizer};
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(fs::path(path) / name, ignored); };
  // A directory, or its file that holds the tokenizer: without a look at weights.
  const fs::path name = fs::path(path).filename();
  const bool is_file = name == "tokenizer.json" || name == "tokenizer.model";
  const bool is_plain = has("tokenizer.json") || has("tokenizer.model") || !has("config.json");
  if (is_file || (fs::is_directory(path, ignored) && is_plain)) {
    const std::string parent = fs::path(path).parent_path().string();
    const std::string directory = !is_file ? path : parent.empty() ? "." : parent;
    auto tokenizer = open_hf_tokenizer(directory, options);
    if (!tokenizer.ok()) return in_file(std::move(tokenizer).error(), path);
    return tokenizer;
  }
  HEADRACE_ASSIGN(auto checkpoint, open_model_files(path));
  auto tokenizer = tokenizer_of(*checkpoint, options);
  if (!tokenizer.ok()) return in_file(std::move(tokenizer).error(), path);
  // The vocabulary's strings may lie in the mapped file: both live and die together.
  struct Holder {
    std::unique_ptr<Checkpoint> checkpoint;
    std::shared_ptr<const Tokenizer> tokenizer;
  };
  const auto holder =
      std::make_shared<Holder>(Holder{std::move(checkpoint), std::move(tokenizer).value()});
  return std::shared_ptr<const Tokenizer>(holder, holder->tokenizer.get());
}

Result<std::unique_ptr<OpenedModel>> open_model(const std::string& path,
                                                const OpenOptions& options) {
  return opening_errors(path, options, [&]() -> Result<std::unique_ptr<OpenedModel>> {
    HEADRACE_ASSIGN(auto opening, begin_opening(path, options));
    // Of before loading: the weights count once.
    return finish_opening(std::move(opening), memory_to_use(options));
  });
}

std::unique_ptr<Session> OpenedModel::session(int64_t max_tokens) const {
  SessionOptions session_options;
  session_options.kv_type = kv_type;
  session_options.max_tokens = max_tokens > 0 ? std::min(max_tokens, context) : context;
  session_options.block_tokens = options.block_tokens;
  session_options.chunk_tokens = options.chunk_tokens;
  session_options.adapters = adapters;
  return make_session(*model, session_options);
}

Result<std::unique_ptr<Engine>> OpenedModel::start_engine(EngineOptions wanted) {
  wanted.kv_type = kv_type;
  wanted.context = context;
  wanted.block_tokens = options.block_tokens;
  wanted.chunk_tokens = options.chunk_tokens;
  if (!wanted.turns) wanted.turns = options.turns;
  if (wanted.kv_bytes == 0 && wanted.kv_tokens == 0) wanted.kv_bytes = kv_bytes;
  if (wanted.kv_bytes > kv_budget_bytes) {
    return Error{ErrorCode::resource_exhausted,
                 "a KV cache of " + std::to_string(wanted.kv_bytes >> 20) +
                     " MiB does not fit: beside the model there is room for " +
                     std::to_string(kv_budget_bytes >> 20) + " MiB",
                 "", "give less with --kv-memory"};
  }
  if (wanted.kv_bytes == 0 && wanted.kv_tokens == 0 && wanted.max_sequences > 1) {
    wanted.kv_bytes = std::max<uint64_t>(kv_budget_bytes / 2, 1);
  }
  wanted.model_fingerprint = model_fingerprint(*checkpoint);
  const std::string variant = model->key_variant(wanted.context);
  if (!variant.empty()) wanted.model_fingerprint += ", " + variant;
  // Other weights make other keys and values.
  if (!options.quantize.empty()) wanted.model_fingerprint += " as " + options.quantize;
  // And so do adapters, in sessions of a whole conversation.
  wanted.model_fingerprint += prefix_scope("", adapters, model->info());
  wanted.tokenizer_fingerprint = tokenizer->fingerprint().digest;
  return make_engine(*model, wanted);
}

}  // namespace headrace
