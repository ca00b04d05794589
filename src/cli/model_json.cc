// See model_json.h.
#include "cli/model_json.h"

#include <nlohmann/json.hpp>

namespace headrace::cli {

nlohmann::json model_json(const StoredModel& model, const ModelStore& store) {
  nlohmann::json files = nlohmann::json::array();
  for (const RecordedFile& file : model.files) {
    files.push_back(
        {{"path", file.path}, {"size_bytes", file.size_bytes}, {"sha256", file.sha256}});
  }
  const CatalogEntry* entry = store.catalog_entry(model.name);
  std::string sum = model.files.size() == 1 ? model.files.front().sha256 : "";
  if (entry != nullptr) sum = entry->sha256;
  return {{"name", model.name},
          {"path", model.path},
          {"size_bytes", model.size_bytes},
          {"format", model.format},
          {"quantization", model.quantization},
          {"source", model.source},
          {"license", model.license},
          {"license_note", entry != nullptr ? entry->license_note : ""},
          {"sha256", sum},
          {"in_hub_cache", model.is_in_hub_cache},
          {"files", std::move(files)}};
}

}  // namespace headrace::cli
