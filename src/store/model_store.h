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

/// A model that can be pulled by name.
struct CatalogEntry {
  std::string name;  ///< "smollm2-135m"
  std::string description;
  std::string license;       ///< SPDX id or the licence's name
  std::string license_note;  ///< what a user must know before use; may be empty
  std::string file_name;     ///< name in the store
  std::string sha256;        ///< of the finished file
  uint64_t size_bytes = 0;
};

struct StoredModel {
  std::string name;
  std::string path;
  uint64_t size_bytes = 0;
};

struct PullProgress {
  std::string stage;  ///< "downloading", "joining", "checking"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  ///< 0: unknown
};

class ModelStore {
 public:
  /// `root` empty: $HEADRACE_HOME/models, else $XDG_DATA_HOME/headrace/models, else
  /// ~/.local/share/headrace/models.
  static Result<ModelStore> open(const std::string& root = "");

  static const std::vector<CatalogEntry>& catalog();
  static const CatalogEntry& default_model();

  const std::string& root() const { return root_; }
  std::vector<StoredModel> list() const;
  std::optional<StoredModel> find(std::string_view name) const;

  /// Fetches a catalogue model; returns its path. Safe against a second process doing the same
  /// (lock) and against being killed (the file appears under its name only when whole and checked).
  /// Errors: not_found (unknown name: names the nearest), io_error (no network, with the way out),
  /// resource_exhausted (disk), corrupt_data (checksum).
  Result<std::string> pull(std::string_view name,
                           const std::function<void(const PullProgress&)>& progress) const;
  Result<void> remove(std::string_view name) const;

 private:
  std::string root_;
};

}  // namespace headrace
