// The composition root: from what a user calls a model to everything that runs it. Must not know
// JSON or sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/memory_plan.h"
#include "backend/backend.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/engine_options.h"
#include "engine/session/session.h"
#include "engine/step_turns.h"
#include "headrace/engine.h"
#include "headrace/result.h"
#include "model/config.h"
#include "model/model.h"
#include "store/model_store.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer.h"

namespace headrace {

/// What a caller has to say of a model's needs before its weights are read: an error ends the
/// opening.
using CheckNeeds = std::function<Result<void>(const ModelConfig& config, const MemoryNeeds& needs,
                                              uint64_t available_bytes)>;

/// A LoRA adapter that a model is opened with.
struct AdapterFile {
  std::string name;  ///< empty: that of its file or directory
  std::string path;
  float strength = 1.0F;  ///< see AdapterUse; of OpenedModel::adapters
};

struct OpenOptions {
  std::string isa;      ///< empty: HEADRACE_ISA, else the best of the machine
  int num_threads = 0;  ///< 0: usable_processors()
  /// If not null, the model computes on these threads instead of some of its own (`num_threads`,
  /// `pin`). Only one of those who share them may use them at a time: its engine then takes a turn
  /// of `turns` for each step, and no model is opened on them once an engine runs.
  std::shared_ptr<ThreadPool> pool{};
  std::shared_ptr<StepTurns> turns{};  ///< null: the engine waits for nobody
  bool pin = false;                    ///< each thread stays on a processor of its own
  bool pack = true;        ///< else weights stay in the file, and each step packs what it reads
  bool full_head = false;  ///< every step computes all logits, even where a few decide
  /// What matrices of 16- and 32-bit weights become while they are loaded ("q8_0"); empty: they
  /// stay as they are.
  std::string quantize;
  std::string kv_type;  ///< empty: kDefaultKvType; the reference path: f32
  int64_t context = 0;  ///< 0: min(the model's, what fits); more than that is clamped, aloud
  int64_t block_tokens = 16;
  int64_t chunk_tokens = 256;
  std::string pre_tokenizer;    ///< overrides the file's
  std::string chat_template;    ///< source text; overrides the file's
  std::string name;             ///< what the model is called; empty: the file's name
  bool takes_encoders = false;  ///< else a model that generates nothing is refused
  std::vector<AdapterFile> adapters{};
  CheckNeeds check_needs;     ///< may be empty
  uint64_t memory_bytes = 0;  ///< of which nine tenths may be taken; 0: memory_available_bytes()
};

/// What keeps a context from being larger.
enum class ContextLimit {
  asked,   ///< the user wanted no more
  model,   ///< it was made for no more
  memory,  ///< no more fits
};

/// A model ready to run. Members are in order of construction; each may use those before it.
struct OpenedModel {
  std::string path;
  std::unique_ptr<Checkpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;  ///< none: a base model
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
  Isa isa = Isa::reference;
  KvType kv_type = KvType::f16;
  int64_t context = 0;  ///< tokens a sequence may hold
  ContextLimit context_limit = ContextLimit::model;
  uint64_t kv_budget_bytes = 0;  ///< what was left for KV caches when it was opened
  uint64_t kv_bytes =
      0;  ///< what start_engine gives the cache, unless told otherwise; 0: see there
  /// All that it was opened with, each at its strength: what requests use that choose none of their
  /// own, if their maker wants that.
  std::vector<AdapterUse> adapters;
  std::vector<std::string> warnings;
  OpenOptions options;

  /// For up to `max_tokens` tokens, with all adapters; 0: the whole context. More than the context
  /// is cut to it.
  std::unique_ptr<Session> session(int64_t max_tokens = 0) const;
  /// Starts the engine's thread; `session()`s must not run beside it (one caller of the backend).
  /// KV type, context, block and step sizes and the fingerprints are those of the model as it was
  /// opened, whatever `wanted` says of them. An engine for several sequences gets a KV cache for as
  /// many of them as fit half of kv_budget_bytes, unless `wanted` or `kv_bytes` says how large it
  /// is. Errors: those of make_engine; resource_exhausted where `wanted.kv_bytes` are more than
  /// there are.
  Result<std::unique_ptr<Engine>> start_engine(EngineOptions wanted = {});
};

/// Resolves `reference` to a file or a Hugging Face directory: an existing path (which always
/// wins), a name in the store, what was pulled from a hub, an address or a package
/// ("hf:org/repo:Q8_0", "org/repo", ...: ModelStore::resolve); empty is the default model. Does not
/// fetch. Errors: not_found with the way out (`headrace pull NAME`), invalid_argument (several
/// models fit).
Result<std::string> resolve_model(const std::string& reference);

/// Gets a model of the catalogue into the store; returns its path.
using FetchModel =
    std::function<Result<std::string>(const ModelStore& store, const std::string& name)>;

/// `resolve_model`, where the default model is fetched if it was meant and is not there. Errors:
/// those of resolve_model and of `fetch`.
Result<std::string> resolve_or_fetch(const std::string& reference, const FetchModel& fetch);

/// What of the options needs no model: numbers, and names of the KV type and instruction set (also
/// the one in HEADRACE_ISA). Errors: invalid_argument; unsupported (this machine lacks it).
Result<void> check_options(const OpenOptions& options);

/// Opens a file for its tokenizer only (vocabulary-only files too, and Hugging Face directories).
/// An empty `pre_tokenizer` is the file's own.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path,
                                                        const std::string& pre_tokenizer);

/// Opens a whole model. A chat template of the file that cannot be used is a warning; one given in
/// `options` is an error. Errors: not_found, unsupported (a directory, a file without weights, an
/// unknown architecture or format, an embedding model unless `takes_encoders`), corrupt_data,
/// mismatch (the vocabulary and the model's rows, an adapter of another model), invalid_argument
/// (an option), resource_exhausted (weights and one block of KV do not fit the memory left, which
/// is found before weights are read; no threads).
Result<std::unique_ptr<OpenedModel>> open_model(const std::string& path,
                                                const OpenOptions& options);

}  // namespace headrace
