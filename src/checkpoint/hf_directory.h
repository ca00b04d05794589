// A Hugging Face model directory as it lies on disk: config.json, generation_config.json and the
// tensors of its safetensors files, under their own names. Owns the mappings. Must not know models.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/mapped_file.h"
#include "checkpoint/model_directory.h"
#include "checkpoint/safetensors_file.h"
#include "headrace/result.h"

namespace headrace {

class HfDirectory {
 public:
  /// Reads "model.safetensors", or the files that "model.safetensors.index.json" names. Errors name
  /// the file: not_found (no config.json, no weights, a file of the index), corrupt_data,
  /// mismatch (the index names a tensor that its file lacks, or a file holds one that the index
  /// does not know), invalid_argument (a path that leaves the directory), resource_exhausted.
  static Result<HfDirectory> open(const std::string& path);

  const ModelDirectory& directory() const { return directory_; }
  std::string_view config() const { return text_of(*config_); }
  /// Empty where there is none.
  std::string_view generation_config() const {
    return generation_config_ ? text_of(*generation_config_) : std::string_view();
  }
  std::span<const StoredTensor> tensors() const { return tensors_; }
  std::span<const MappedFile> shards() const { return shards_; }
  /// The index in shards() of the file that holds tensors()[i].
  size_t shard_of(size_t i) const { return shard_of_[i]; }

 private:
  explicit HfDirectory(ModelDirectory directory) : directory_(std::move(directory)) {}
  Result<void> read_shard(const std::string& name, HeapBudget& budget);
  Result<void> read_shards();

  ModelDirectory directory_;
  std::optional<MappedFile> config_, generation_config_;
  std::vector<MappedFile> shards_;
  std::vector<StoredTensor> tensors_;
  std::vector<uint32_t> shard_of_;
};

}  // namespace headrace
