// The models that a server has, by name. Must not know HTTP.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/served_model.h"
#include "headrace/engine.h"
#include "headrace/result.h"
#include "server/stream_pump.h"

namespace headrace {
class ModelBounds;
}

namespace headrace::server {

/// One loaded model with its engine.
struct ModelEntry {
  std::shared_ptr<const api::ServedModel> served;
  std::shared_ptr<Engine> engine;
  std::shared_ptr<void> keeps;  ///< whatever the engine needs, and goes after it; may be null
  int64_t loaded_unix_seconds = 0;
  std::string chat_template;                  ///< its source; "" for a base model
  int64_t max_sequences = 0;                  ///< computed at once
  std::shared_ptr<const ModelBounds> bounds;  ///< of the machine; null: not measured
  std::unique_ptr<StreamPump> pump;           ///< set by the server
  /// Of the same set, with the same tokenizer: answers where this one has no room, if the request
  /// allows it or `lighter_for_all`; null: none. No circle leads back here.
  ModelEntry* lighter = nullptr;
  bool lighter_for_all = false;
  std::atomic<int64_t> num_lighter{0};  ///< requests for this one that a lighter one answered

  const std::string& name() const { return served->name; }
  /// The engine's, with MemoryRung::lighter_model as the server counts it.
  EngineStats stats() const;
};

/// Never changed once a request may see it.
class ModelSet {
 public:
  explicit ModelSet(std::vector<std::unique_ptr<ModelEntry>> entries);

  const std::vector<std::unique_ptr<ModelEntry>>& all() const { return entries_; }
  ModelEntry& first() const { return *entries_.front(); }
  /// A model has the names of its adapters too. "" is the first. Where there is one model alone,
  /// without adapters, it answers to every name, with a warning from `api`; else errors: not_found,
  /// naming those there are.
  Result<ModelEntry*> find(std::string_view name) const;

  /// No request gets anything more from its engine.
  void end_streams() const;

 private:
  std::vector<std::unique_ptr<ModelEntry>> entries_;
};

}  // namespace headrace::server
