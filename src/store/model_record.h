// What the store remembers of a model that was pulled: where it came from, what it is called, its
// files and checksums. One small JSON file a model in ROOT/.records. Must not know how it came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"

namespace headrace {

struct RecordedFile {
  std::string path;  ///< inside of the repository, or the name in the store
  uint64_t size_bytes = 0;
  std::string sha256;    ///< may be empty
  bool is_ours = false;  ///< we fetched it; else another tool had put it into the cache
};

struct ModelRecord {
  std::string name;                   ///< what -m takes
  std::string source;                 ///< "hf:org/repo:Q8_0", an address, "pip:package==1.0"
  std::vector<std::string> requests;  ///< what was asked for, as ModelSource writes it
  std::string repo;                   ///< of the hub; else ""
  std::string commit;
  std::string path;  ///< the file or folder to open
  std::string format;
  std::string quantization;
  std::string license;
  std::vector<RecordedFile> files;

  uint64_t size_bytes() const;
};

/// Errors: corrupt_data, with the key.
Result<ModelRecord> parse_record(std::string_view text);
std::string format_record(const ModelRecord& record);

class RecordBook {
 public:
  /// `root`: the store's folder; need not be there.
  explicit RecordBook(std::string root) : root_(std::move(root)) {}

  /// Those whose model is still there, by name. A damaged record is passed over.
  std::vector<ModelRecord> all() const;
  std::optional<ModelRecord> find(std::string_view name) const;
  /// The one that `request` (ModelSource::to_string) was pulled as.
  std::optional<ModelRecord> requested(std::string_view request) const;
  /// Errors: io_error, resource_exhausted.
  Result<void> save(const ModelRecord& record) const;
  void remove(std::string_view name) const;

 private:
  std::string path_of(std::string_view name) const;
  std::string root_;
};

}  // namespace headrace
