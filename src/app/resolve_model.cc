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

/// Whether it can be nothing but a path that is wrong.
bool is_path_only(const std::string& text) {
  if (text.starts_with('/') || text.starts_with('.') || text.starts_with('~')) return true;
  return text.ends_with(".gguf") && text.find(':') == std::string::npos;
}

Error no_such_file(const std::string& path) {
  return {ErrorCode::not_found, "no such file", path,
          "check the path, or use a name that can be pulled: " + known_names() +
              ", hf:ORG/REPO[:QUANTISATION]"};
}

}  // namespace

Result<std::string> resolve_model(const std::string& reference) {
  std::error_code error;
  if (!reference.empty() && std::filesystem::exists(reference, error)) return reference;

  const std::string name = reference.empty() ? ModelStore::default_model().name : reference;
  if (is_path_only(name)) return no_such_file(name);
  HEADRACE_ASSIGN(const ModelStore store, ModelStore::open());
  auto found = store.resolve(name);
  if (found.ok()) return std::move(found->path);
  if (in_catalog(name)) {
    return Error{ErrorCode::not_found, "the model is not in the local store", name,
                 "fetch it with: headrace pull " + name};
  }
  const bool is_plain_name = name.find_first_of("/:") == std::string::npos;
  if (is_plain_name) {
    return Error{ErrorCode::not_found, "no file and no model in the store has this name", name,
                 "see headrace list; names that can be pulled: " + known_names() +
                     ", hf:ORG/REPO[:QUANTISATION]"};
  }
  const bool has_prefix =
      name.starts_with("hf:") || name.starts_with("pip:") || name.find("://") != std::string::npos;
  if (has_prefix) return std::move(found).error();
  if (found.error().code == ErrorCode::invalid_argument && !parse_model_source(name).ok()) {
    return no_such_file(name);
  }
  Error missing = std::move(found).error();
  if (missing.code == ErrorCode::not_found) {
    missing.message = "no such file, and " + missing.message;
    missing.where = name;
  }
  return missing;
}

Result<std::string> resolve_or_fetch(const std::string& reference, const FetchModel& fetch) {
  auto path = resolve_model(reference);
  if (path.ok() || !reference.empty() || path.error().code != ErrorCode::not_found) return path;
  HEADRACE_ASSIGN(const ModelStore store, ModelStore::open());
  return fetch(store, ModelStore::default_model().name);
}

}  // namespace headrace
