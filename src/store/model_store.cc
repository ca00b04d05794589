// See model_store.h. Layout of the folder: NAME.gguf, and .pull/ with locks and unfinished work.
#include "store/model_store.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/nearest_word.h"
#include "store/pull.h"

namespace headrace {
namespace {

constexpr std::string_view kExtension = ".gguf";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string default_root() {
  if (const auto set = environment("HEADRACE_HOME"); !set.empty()) return set + "/models";
  if (const auto set = environment("XDG_DATA_HOME"); !set.empty()) return set + "/headrace/models";
  if (const auto set = environment("HOME"); !set.empty()) {
    return set + "/.local/share/headrace/models";
  }
  return "";
}

Error unknown_name(std::string_view name, const std::vector<std::string>& known) {
  Error error{ErrorCode::not_found, "no model of this name", std::string(name), ""};
  const std::string meant = nearest_word(name, known);
  if (!meant.empty()) {
    error.hint = "did you mean " + meant + "?";
    return error;
  }
  for (const auto& candidate : known) {
    error.hint += (error.hint.empty() ? "known: " : ", ") + candidate;
  }
  return error;
}

}  // namespace

Result<ModelStore> ModelStore::open(const std::string& root, std::vector<CatalogEntry> catalog) {
  ModelStore store;
  store.root_ = root.empty() ? default_root() : root;
  if (store.root_.empty()) {
    return Error{ErrorCode::not_found, "no folder for models: HOME is not set", "",
                 "set HEADRACE_HOME to a folder"};
  }
  store.catalog_ = catalog.empty() ? ModelStore::catalog() : std::move(catalog);
  return store;
}

const CatalogEntry* ModelStore::catalog_entry(std::string_view name) const {
  for (const auto& entry : catalog_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<StoredModel> ModelStore::list() const {
  std::vector<StoredModel> models;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root_, ignored)) {
    const std::string file = entry.path().filename().string();
    std::error_code error;
    if (file.size() <= kExtension.size() || file.front() == '.' || !file.ends_with(kExtension) ||
        !entry.is_regular_file(error)) {
      continue;
    }
    const uint64_t size = entry.file_size(error);
    models.push_back(
        {file.substr(0, file.size() - kExtension.size()), entry.path().string(), error ? 0 : size});
  }
  std::sort(models.begin(), models.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return models;
}

std::optional<StoredModel> ModelStore::find(std::string_view name) const {
  for (auto& model : list()) {
    if (model.name == name) return std::move(model);
  }
  return std::nullopt;
}

Result<std::string> ModelStore::pull(std::string_view name,
                                     const std::function<void(const PullProgress&)>& progress,
                                     const std::function<bool()>& keep_going) const {
  const CatalogEntry* entry = catalog_entry(name);
  if (entry == nullptr) {
    std::vector<std::string> known;
    for (const auto& candidate : catalog_) known.push_back(candidate.name);
    return unknown_name(name, known);
  }
  return pull_into(root_, *entry, progress, keep_going);
}

Result<void> ModelStore::remove(std::string_view name) const {
  remove_stale_pulls(root_);
  const auto model = find(name);
  if (!model) {
    std::vector<std::string> known;
    for (const auto& candidate : list()) known.push_back(candidate.name);
    return unknown_name(name, known);
  }
  std::error_code error;
  std::filesystem::remove(model->path, error);
  if (error) {
    return Error{ErrorCode::io_error, "cannot remove: " + error.message(), model->path, ""};
  }
  return {};
}

}  // namespace headrace
