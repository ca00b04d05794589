// See model_set.h.
#include "server/model_set.h"

#include <fmt/format.h>

#include <utility>

namespace headrace::server {

ModelSet::ModelSet(std::vector<std::unique_ptr<ModelEntry>> entries)
    : entries_(std::move(entries)) {
  for (auto& each : entries_) each->pump = std::make_unique<StreamPump>(*each->engine);
}

EngineStats ModelEntry::stats() const {
  EngineStats out = engine->stats();
  out.rungs[static_cast<size_t>(MemoryRung::lighter_model)] += num_lighter.load();
  return out;
}

Result<ModelEntry*> ModelSet::find(std::string_view name) const {
  if (name.empty()) return entries_.front().get();
  for (const auto& each : entries_) {
    if (each->name() == name || each->served->find_adapter(name) >= 0) return each.get();
  }
  // One model alone answers to any name, with a warning; where names tell answers apart, none does.
  if (entries_.size() == 1 && entries_.front()->served->adapters.empty()) {
    return entries_.front().get();
  }
  std::string known;
  for (const auto& each : entries_) {
    known += (known.empty() ? "" : ", ") + each->name();
    for (const auto& adapter : each->served->adapters) known += ", " + adapter.name;
  }
  return Error{ErrorCode::not_found, fmt::format("no model of that name; there are {}", known),
               "model", ""};
}

void ModelSet::end_streams() const {
  for (const auto& each : entries_) each->pump->end();
}

}  // namespace headrace::server
