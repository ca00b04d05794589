// See open_model.h.
#include "app/open_model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "app/memory_plan.h"
#include "app/model_fingerprint.h"
#include "app/weight_needs.h"
#include "backend/cpu/cpu_backend.h"
#include "base/cpu_features.h"
#include "base/os/system_limits.h"
#include "engine/engine_impl.h"
#include "model/registry.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

Result<Isa> isa_of(const OpenOptions& options) {
  const char* set = std::getenv("HEADRACE_ISA");
  const bool by_option = !options.isa.empty();
  auto isa = choose_isa(by_option ? options.isa : set != nullptr ? set : "");
  if (!isa.ok()) return std::move(isa).error().at(by_option ? "--isa" : "HEADRACE_ISA");
  return isa;
}

Result<KvType> kv_type_of(const OpenOptions& options, Isa isa) {
  if (options.kv_type.empty()) return isa == Isa::reference ? KvType::f32 : kDefaultKvType;
  if (const auto type = kv_type_named(options.kv_type)) return *type;
  return Error{ErrorCode::invalid_argument,
               "unknown KV type '" + options.kv_type + "'; known are q8, q12, f16, f32", "", ""};
}

Result<std::unique_ptr<Backend>> start_backend(Isa isa, int num_threads,
                                               const OpenOptions& options) {
  try {
    return make_cpu_backend(CpuBackendOptions{isa, num_threads, options.pin, !options.full_head});
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 "cannot start " + std::to_string(num_threads) + " threads: " + fault.what(), "",
                 "ask for fewer with -t"};
  }
}

/// A readable error for what is no model file at all.
Result<void> check_path(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {};
  if (fs::exists(fs::path(path) / "tokenizer.json", ignored)) {
    return Error{ErrorCode::unsupported,
                 "a Hugging Face directory; of these only the tokenizer can be used", path,
                 "give a GGUF file of the model"};
  }
  return Error{ErrorCode::io_error, "a directory, not a model file", path,
               "give a GGUF file, or a name from headrace list"};
}

Result<void> check_weights(const Checkpoint& checkpoint) {
  if (!checkpoint.tensors().empty()) return {};
  return Error{ErrorCode::unsupported, "the file holds a vocabulary and no weights",
               checkpoint.path(),
               "it serves tokenize, detokenize and render; to run a model give a whole one"};
}

/// The tokenizer guard between a file's vocabulary and its weights: an id of one must be a row of
/// the other.
Result<void> check_vocabulary(const Tokenizer& tokenizer, const Model& model) {
  if (tokenizer.vocab_size() == model.info().vocab_size) return {};
  return Error{ErrorCode::mismatch,
               "the tokenizer has " + std::to_string(tokenizer.vocab_size()) +
                   " tokens, the model's embedding " + std::to_string(model.info().vocab_size),
               "", "the file was put together wrongly; get it again"};
}

Result<void> set_chat_template(OpenedModel& opened) {
  if (!opened.options.chat_template.empty()) {
    auto parsed = ChatTemplate::parse(opened.options.chat_template);
    if (!parsed.ok()) return std::move(parsed).error();
    opened.chat_template = std::move(parsed).value();
    return {};
  }
  const auto source = opened.checkpoint->metadata().get_string("tokenizer.chat_template");
  if (!source.ok()) {
    opened.warnings.push_back("no chat template: " + source.error().to_string());
    return {};
  }
  if (!source->has_value()) return {};
  auto parsed = ChatTemplate::parse(**source);
  if (parsed.ok()) {
    opened.chat_template = std::move(parsed).value();
  } else {
    opened.warnings.push_back("the file's chat template cannot be used: " +
                              parsed.error().to_string() + "; give one with --chat-template FILE");
  }
  return {};
}

/// What running the model takes, its weights still in the file.
MemoryNeeds needs_of(const OpenedModel& opened, const ModelConfig& config, int num_threads) {
  MemoryNeeds needs = memory_needs(config, opened.tokenizer->vocab_size());
  set_weight_needs(needs, *opened.checkpoint,
                   {.pack = opened.options.pack,
                    .as_floats = opened.isa == Isa::reference,
                    .num_threads = num_threads});
  needs.kv_type = opened.kv_type;
  needs.block_tokens = opened.options.block_tokens;
  needs.chunk_tokens = opened.options.chunk_tokens;
  return needs;
}

Error too_large(const OpenedModel& opened, const MemoryNeeds& needs, uint64_t available) {
  const auto mib = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  std::string hint = "close other programs, or use a smaller model or a smaller quantisation";
  if (opened.options.pack) hint += "; --no-pack runs a model from its file, slowly";
  return {ErrorCode::resource_exhausted,
          "the model needs " + mib(total_bytes(needs, 1)) + " of memory (weights " +
              mib(needs.weight_bytes) + "), and may use " + mib(budget_bytes(available)),
          opened.path, std::move(hint)};
}

/// Before anything large is read: whether the weights and the smallest cache fit.
Result<void> check_memory(const OpenedModel& opened, const ModelConfig& config,
                          const MemoryNeeds& needs, uint64_t available) {
  if (total_bytes(needs, 1) > budget_bytes(available)) return too_large(opened, needs, available);
  if (opened.options.check_needs) return opened.options.check_needs(config, needs, available);
  return {};
}

/// Sets `context`: what was asked, clamped to what the model was made for and to what fits
/// `available` bytes.
Result<void> set_context(OpenedModel& opened, const MemoryNeeds& needs, uint64_t available) {
  const int64_t trained = opened.model->info().context_length;
  const int64_t asked = opened.options.context;
  const int64_t wanted = asked > 0 ? std::min(asked, trained) : trained;
  const int64_t fitting = largest_context(needs, available, wanted);
  if (fitting == 0) return too_large(opened, needs, available);
  if (asked > trained) {
    opened.warnings.push_back("context clamped from " + std::to_string(asked) + " to " +
                              std::to_string(trained) + " tokens, which the model was made for");
  }
  if (fitting < wanted) {
    opened.warnings.push_back("context clamped from " + std::to_string(wanted) + " to " +
                              std::to_string(fitting) +
                              " tokens: weights, activations and KV cache must fit " +
                              std::to_string(budget_bytes(available) >> 20) + " MiB");
  }
  opened.context = fitting;
  const uint64_t budget = budget_bytes(available);
  opened.kv_budget_bytes = budget - std::min(budget, total_bytes(needs, 0));
  opened.context_limit = fitting < wanted    ? ContextLimit::memory
                         : wanted == trained ? ContextLimit::model
                                             : ContextLimit::asked;
  return {};
}

Result<std::unique_ptr<OpenedModel>> open_checked(const std::string& path,
                                                  const OpenOptions& options) {
  HEADRACE_TRY(check_options(options));
  HEADRACE_ASSIGN(const Isa isa, isa_of(options));
  HEADRACE_TRY(check_path(path));
  auto opened = std::make_unique<OpenedModel>();
  opened->path = path;
  opened->options = options;
  if (opened->options.name.empty()) opened->options.name = fs::path(path).stem().string();
  opened->isa = isa;
  HEADRACE_ASSIGN(opened->kv_type, kv_type_of(options, isa));
  HEADRACE_ASSIGN(opened->checkpoint, open_checkpoint(path));
  HEADRACE_TRY(check_weights(*opened->checkpoint));

  HEADRACE_ASSIGN(opened->tokenizer, make_tokenizer(opened->checkpoint->metadata(),
                                                    TokenizerOptions{options.pre_tokenizer}));
  HEADRACE_ASSIGN(const RecognizedModel recognized, recognize(*opened->checkpoint));
  const int processors = usable_processors();
  int threads = options.num_threads > 0 ? options.num_threads : processors;
  if (threads > processors) {
    // More would wait for each other, several times slower.
    opened->warnings.push_back(
        "using " + std::to_string(processors) + (processors == 1 ? " thread" : " threads") +
        " instead of " + std::to_string(threads) + ": this process may use no more processors");
    threads = processors;
  }
  MemoryNeeds needs = needs_of(*opened, recognized.config, threads);
  // Of before loading: the weights count once.
  const uint64_t available = memory_available_bytes();
  HEADRACE_TRY(check_memory(*opened, recognized.config, needs, available));
  HEADRACE_ASSIGN(opened->backend, start_backend(isa, threads, options));
  LoadModelOptions load_options;
  load_options.pack = options.pack;
  load_options.name = opened->options.name;
  load_options.end_tokens = opened->tokenizer->special().end_of_generation;
  HEADRACE_ASSIGN(opened->model, load_model(*opened->checkpoint, *opened->backend, load_options));

  HEADRACE_TRY(check_vocabulary(*opened->tokenizer, *opened->model));
  HEADRACE_TRY(set_chat_template(*opened));
  if (options.pack) needs.weight_bytes = opened->model->info().weight_bytes;
  HEADRACE_TRY(set_context(*opened, needs, available));
  return opened;
}

/// The error names the file, once.
Error in_file(Error error, const std::string& path) {
  return error.where.find(path) == std::string::npos ? std::move(error).at(path) : std::move(error);
}

}  // namespace

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
  HEADRACE_ASSIGN(const Isa isa, isa_of(options));
  HEADRACE_TRY(kv_type_of(options, isa));
  return {};
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path,
                                                        const std::string& pre_tokenizer) {
  const TokenizerOptions options{pre_tokenizer};
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    auto tokenizer = open_hf_tokenizer(path, options);
    if (!tokenizer.ok()) return in_file(std::move(tokenizer).error(), path);
    return tokenizer;
  }
  HEADRACE_ASSIGN(auto checkpoint, open_checkpoint(path));
  auto tokenizer = make_tokenizer(checkpoint->metadata(), options);
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
  try {
    auto opened = open_checked(path, options);
    // A wrong option is the caller's, whatever the file.
    if (!opened.ok() && opened.error().code != ErrorCode::invalid_argument) {
      return in_file(std::move(opened).error(), path);
    }
    return opened;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory while loading the model", path,
                 "close other programs or use a smaller model"};
  }
}

std::unique_ptr<Session> OpenedModel::session(int64_t max_tokens) const {
  SessionOptions session_options;
  session_options.kv_type = kv_type;
  session_options.max_tokens = max_tokens > 0 ? std::min(max_tokens, context) : context;
  session_options.block_tokens = options.block_tokens;
  session_options.chunk_tokens = options.chunk_tokens;
  return make_session(*model, session_options);
}

Result<std::unique_ptr<Engine>> OpenedModel::start_engine(EngineOptions wanted) {
  wanted.kv_type = kv_type;
  wanted.context = context;
  wanted.block_tokens = options.block_tokens;
  wanted.chunk_tokens = options.chunk_tokens;
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
  wanted.tokenizer_fingerprint = tokenizer->fingerprint().digest;
  return make_engine(*model, wanted);
}

}  // namespace headrace
