// See open_stages.h.
#include "app/open_stages.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/model_files.h"
#include "app/weight_needs.h"
#include "backend/cpu/cpu_backend.h"
#include "base/os/system_limits.h"
#include "base/saturating.h"
#include "model/adapters/open_adapter.h"
#include "model/registry.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<Backend>> start_backend(Isa isa, int num_threads,
                                               const OpenOptions& options) {
  try {
    return make_cpu_backend(
        CpuBackendOptions{isa, num_threads, options.pin, !options.full_head, options.pool});
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 "cannot start " + std::to_string(num_threads) + " threads: " + fault.what(), "",
                 "ask for fewer with -t"};
  }
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
  const auto source = chat_template_of(*opened.checkpoint);
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

/// Nothing that an encoder caches outlives a step, so that small types would save nothing; and a
/// step holds the longest text.
Result<void> set_up_encoder(OpenedModel& opened, const ModelConfig& config) {
  OpenOptions& options = opened.options;
  if (!options.takes_encoders) {
    return Error{ErrorCode::unsupported, "this is an embedding model: it generates no text", "",
                 "headrace embed makes vectors with it, headrace serve answers /v1/embeddings"};
  }
  if (options.kv_type.empty()) opened.kv_type = KvType::f32;
  const int64_t context = options.context > 0 ? std::min(options.context, config.context_length)
                                              : config.context_length;
  options.chunk_tokens = std::max(options.chunk_tokens, context);
  return {};
}

/// What running the model takes, its weights still in the file.
MemoryNeeds needs_of(const ModelOpening& opening) {
  const OpenedModel& opened = *opening.opened;
  MemoryNeeds needs = memory_needs(opening.config, opened.tokenizer->vocab_size());
  set_weight_needs(needs, *opened.checkpoint,
                   {.pack = opened.options.pack,
                    .quantize = find_quantization(opened.options.quantize),
                    .as_floats = opened.isa == Isa::reference,
                    .num_threads = opening.num_threads});
  for (const Adapter& adapter : opening.adapters) {
    needs.adapter_bytes = saturating_add(needs.adapter_bytes, adapter.packed_bytes());
  }
  needs.adapters = adapter_sizes_of(opening.adapters);
  needs.kv_type = opened.kv_type;
  needs.block_tokens = opened.options.block_tokens;
  needs.chunk_tokens = opened.options.chunk_tokens;
  return needs;
}

/// What files only told about, once it is loaded: weights that were packed, and adapters.
void set_loaded_bytes(MemoryNeeds& needs, const ModelInfo& info, bool pack) {
  if (pack) needs.weight_bytes = info.weight_bytes;
  needs.adapter_bytes = 0;
  for (const AdapterInfo& each : info.adapters) {
    needs.adapter_bytes = saturating_add(needs.adapter_bytes, each.weight_bytes);
  }
}

Error too_large(const OpenedModel& opened, const MemoryNeeds& needs, uint64_t available) {
  const auto mib = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  std::string hint = "close other programs, or use a smaller model or a smaller quantisation";
  if (opened.options.pack && opened.options.quantize.empty()) {
    hint += ", or --quantize q8_0 or q4_k for a file of 16- or 32-bit weights";
  }
  const std::string adapters =
      needs.adapter_bytes == 0 ? "" : ", adapters " + mib(needs.adapter_bytes);
  if (opened.options.pack) hint += "; --no-pack runs a model from its file, slowly";
  return {ErrorCode::resource_exhausted,
          "the model needs " + mib(total_bytes(needs, 1)) + " of memory (weights " +
              mib(needs.weight_bytes) + adapters + "), and may use " + mib(budget_bytes(available)),
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

/// How many threads to compute with: those of the pool, or as many as were asked for and make
/// sense, aloud.
int num_threads_of(const OpenOptions& options, std::vector<std::string>& warnings) {
  if (options.pool) return options.pool->num_threads();
  return threads_to_use(options.num_threads, warnings);
}

/// A file's name without the ending, and without the number of a part.
std::string name_of_file(const std::string& path) {
  std::string name = fs::path(path).stem().string();
  constexpr std::string_view kPart = "-00001-of-00001";
  const size_t part = name.size() - std::min(name.size(), kPart.size());
  const bool is_part = name.find("-of-", part) == part + 6 && name[part] == '-';
  return is_part && part > 0 ? name.substr(0, part) : name;
}

/// What a model is called where nobody says: its file, or its directory; of one in a hub's cache,
/// "models--org--name/snapshots/commit", the name.
std::string name_of_model(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return name_of_file(path);
  const fs::path directory = fs::absolute(path + "/", ignored).lexically_normal().parent_path();
  const std::string repository = directory.parent_path().parent_path().filename().string();
  if (directory.parent_path().filename() == "snapshots" && repository.starts_with("models--")) {
    return repository.substr(repository.rfind("--") + 2);
  }
  return directory.filename().string();
}

/// Of an adapter likewise: adapter_model.safetensors is called like its directory.
std::string name_of_adapter(const std::string& path) {
  const fs::path name = fs::path(path).filename();
  const bool is_part = name == "adapter_model.safetensors" || name == "adapter_config.json";
  std::error_code ignored;
  return name_of_model(is_part ? fs::absolute(path, ignored).parent_path().string() : path);
}

Result<void> open_adapters(const OpenOptions& options, OpenedModel& opened,
                           std::vector<Adapter>& out) {
  for (const AdapterFile& file : options.adapters) {
    const std::string name = file.name.empty() ? name_of_adapter(file.path) : file.name;
    HEADRACE_ASSIGN(Adapter adapter, open_adapter(file.path, name, *opened.checkpoint));
    const bool is_taken = std::ranges::find(out, name, &Adapter::name) != out.end();
    if (is_taken || name == opened.options.name) {
      return Error{ErrorCode::invalid_argument,
                   "the name '" + name + "' is that of the model or of another adapter", file.path,
                   "give it one of its own: --lora NAME=FILE"};
    }
    opened.adapters.push_back({static_cast<int32_t>(out.size()), file.strength});
    out.push_back(std::move(adapter));
  }
  return {};
}

}  // namespace

Result<Isa> isa_of(const OpenOptions& options) {
  const char* set = std::getenv("HEADRACE_ISA");
  const bool by_option = !options.isa.empty();
  auto isa = choose_isa(by_option ? options.isa : set != nullptr ? set : "");
  if (!isa.ok()) return std::move(isa).error().at(by_option ? "--isa" : "HEADRACE_ISA");
  return isa;
}

Result<const Quantization*> quantization_of(const OpenOptions& options) {
  const Quantization* found = nullptr;
  if (options.quantize.empty()) return found;
  found = find_quantization(options.quantize);
  if (found == nullptr) {
    std::string known;
    for (const std::string& name : quantization_names()) {
      known += (known.empty() ? "" : ", ") + name;
    }
    return Error{ErrorCode::invalid_argument,
                 "unknown type '" + options.quantize + "' to quantise to; known are " + known, "",
                 ""};
  }
  if (!options.pack) {
    return Error{ErrorCode::invalid_argument,
                 "weights that stay in the file cannot be quantised while they are loaded", "",
                 "leave out --no-pack or --quantize, or write a file with headrace convert"};
  }
  return found;
}

Result<KvType> kv_type_of(const OpenOptions& options, Isa isa) {
  if (options.kv_type.empty()) return isa == Isa::reference ? KvType::f32 : kDefaultKvType;
  if (const auto type = kv_type_named(options.kv_type)) return *type;
  return Error{ErrorCode::invalid_argument,
               "unknown KV type '" + options.kv_type + "'; known are q8, q12, f16, f32", "", ""};
}

uint64_t memory_to_use(const OpenOptions& options) {
  return options.memory_bytes > 0 ? options.memory_bytes : memory_available_bytes();
}

int threads_to_use(int num_wanted, std::vector<std::string>& warnings) {
  const int processors = usable_processors();
  if (num_wanted == 0) return processors;
  if (num_wanted <= processors) return num_wanted;
  // More would wait for each other, several times slower.
  warnings.push_back("using " + std::to_string(processors) +
                     (processors == 1 ? " thread" : " threads") + " instead of " +
                     std::to_string(num_wanted) + ": this process may use no more processors");
  return processors;
}

Result<ModelOpening> begin_opening(const std::string& path, const OpenOptions& options) {
  HEADRACE_TRY(check_options(options));
  HEADRACE_ASSIGN(const Isa isa, isa_of(options));
  ModelOpening opening;
  opening.opened = std::make_unique<OpenedModel>();
  OpenedModel& opened = *opening.opened;
  opened.path = path;
  opened.options = options;
  if (opened.options.name.empty()) opened.options.name = name_of_model(path);
  opened.isa = isa;
  HEADRACE_ASSIGN(opened.kv_type, kv_type_of(options, isa));
  HEADRACE_ASSIGN(opened.checkpoint, open_model_files(path));
  HEADRACE_TRY(check_weights(*opened.checkpoint));
  if (!options.quantize.empty()) HEADRACE_TRY(check_quantizable(*opened.checkpoint));

  HEADRACE_ASSIGN(opened.tokenizer,
                  tokenizer_of(*opened.checkpoint, TokenizerOptions{options.pre_tokenizer}));
  HEADRACE_ASSIGN(auto recognized, recognize(*opened.checkpoint));
  if (recognized.config.is_encoder) HEADRACE_TRY(set_up_encoder(opened, recognized.config));
  HEADRACE_TRY(open_adapters(options, opened, opening.adapters));
  // The tokenizer has its own copy of the vocabulary, a few megabytes.
  opened.checkpoint->release_all();
  opening.config = std::move(recognized.config);
  opening.num_threads = num_threads_of(options, opened.warnings);
  opening.needs = needs_of(opening);
  return opening;
}

Result<std::unique_ptr<OpenedModel>> finish_opening(ModelOpening opening, uint64_t limit_bytes) {
  OpenedModel& opened = *opening.opened;
  const OpenOptions& options = opened.options;
  MemoryNeeds& needs = opening.needs;
  HEADRACE_TRY(check_memory(opened, opening.config, needs, limit_bytes));
  HEADRACE_ASSIGN(opened.backend, start_backend(opened.isa, opening.num_threads, options));
  LoadModelOptions load_options;
  load_options.pack = options.pack;
  load_options.quantize = find_quantization(options.quantize);
  load_options.adapters = opening.adapters;
  load_options.name = options.name;
  load_options.end_tokens = opened.tokenizer->special().end_of_generation;
  HEADRACE_ASSIGN(opened.model, load_model(*opened.checkpoint, *opened.backend, load_options));

  HEADRACE_TRY(check_vocabulary(*opened.tokenizer, *opened.model));
  HEADRACE_TRY(set_chat_template(opened));
  set_loaded_bytes(needs, opened.model->info(), options.pack);
  HEADRACE_TRY(set_context(opened, needs, limit_bytes));
  return std::move(opening.opened);
}

bool is_of_adapter(const Error& error, const OpenOptions& options) {
  return std::ranges::any_of(options.adapters, [&](const AdapterFile& file) {
    const std::string_view where = error.where;
    if (!where.starts_with(file.path)) return false;
    const std::string_view rest = where.substr(file.path.size());
    // The file, something in it, or a file of the directory.
    return rest.empty() || rest.front() == ':' || rest.front() == '/' || file.path.ends_with('/');
  });
}

Error in_file(Error error, const std::string& path) {
  return error.where.find(path) == std::string::npos ? std::move(error).at(path) : std::move(error);
}

}  // namespace headrace
