// resolve_model and resolve_or_fetch of open_model.h.
#include <filesystem>

#include "app/open_model.h"
#include "store/model_store.h"

namespace headrace {
namespace {

bool in_catalog(const std::string& name) {
  for (const CatalogEntry& entry : ModelStore::catalog()) {
    if (entry.name == name) return true;
  }
  return false;
}

std::string known_names() {
  std::string names;
  for (const CatalogEntry& entry : ModelStore::catalog()) {
    names += (names.empty() ? "" : ", ") + entry.name;
  }
  return names;
}

}  // namespace

Result<std::string> resolve_model(const std::string& reference) {
  std::error_code error;
  if (!reference.empty() && std::filesystem::exists(reference, error)) return reference;

  const std::string name = reference.empty() ? ModelStore::default_model().name : reference;
  // A name never has a slash; what has one, or ends like a file, was meant as a path.
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".gguf");
  if (!is_path) {
    HEADRACE_ASSIGN(const ModelStore store, ModelStore::open());
    if (const auto found = store.find(name)) return found->path;
    if (in_catalog(name)) {
      return Error{ErrorCode::not_found, "the model is not in the local store", name,
                   "fetch it with: headrace pull " + name};
    }
  }
  return Error{ErrorCode::not_found,
               is_path ? "no such file" : "no file and no model in the store has this name", name,
               is_path ? "check the path, or use a name that can be pulled: " + known_names()
                       : "see headrace list; names that can be pulled: " + known_names()};
}

Result<std::string> resolve_or_fetch(const std::string& reference, const FetchModel& fetch) {
  auto path = resolve_model(reference);
  if (path.ok() || !reference.empty() || path.error().code != ErrorCode::not_found) return path;
  HEADRACE_ASSIGN(const ModelStore store, ModelStore::open());
  return fetch(store, ModelStore::default_model().name);
}

}  // namespace headrace
