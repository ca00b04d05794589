// Several models in one process: one memory budget, one pool of threads, turns. Must not know JSON
// or sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/open_model.h"
#include "base/thread_pool.h"
#include "engine/step_turns.h"
#include "headrace/result.h"

namespace headrace {

/// One of them. What is empty is as the options for all say, or as open_model does it.
struct ModelSpec {
  std::string path{};
  std::string name{};           ///< names must differ; empty: the file's name
  uint64_t kv_bytes = 0;        ///< of its KV cache; 0: see open_models
  int64_t context = 0;          ///< as OpenOptions::context
  std::string chat_template{};  ///< as OpenOptions::chat_template
};

struct OpenedModels {
  std::shared_ptr<ThreadPool> pool;                  ///< that all compute on
  std::shared_ptr<StepTurns> turns;                  ///< of their engines
  std::vector<std::unique_ptr<OpenedModel>> models;  ///< in the order of the specs
};

/// Opens all, or none. Weights, activations and the KV memory that was asked for come out of one
/// budget (OpenOptions::memory_bytes), which is divided before any weights are read; models that
/// asked for no KV memory share what is left equally, and that is their kv_budget_bytes.
/// OpenedModel::start_engine of each gives an engine that takes turns with the others; engines are
/// started once all are open, and OpenedModel::session() must not be used beside them. Errors:
/// invalid_argument (no model, two of one name, an option), those of open_model, and
/// resource_exhausted with the name of the model that does not fit.
Result<OpenedModels> open_models(const std::vector<ModelSpec>& specs, const OpenOptions& options);

}  // namespace headrace
