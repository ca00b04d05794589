// A model's file written anew: in another type, in one file instead of several. Must not know JSON
// or how progress is shown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/quantization.h"
#include "headrace/result.h"

namespace headrace {

struct ConvertOptions {
  const Quantization* to = nullptr;  ///< null: every tensor as it is
  bool overwrite = false;            ///< else a file that is there is an error
  int num_threads = 0;               ///< 0: usable_processors()
  /// Weights of a Hugging Face directory are spread over files of about this size at the most: what
  /// other writers have.
  uint64_t most_shard_bytes = 5'000'000'000;
  /// Told how many of the source's bytes are done; false ends the work. May be empty.
  std::function<bool(uint64_t done_bytes, uint64_t total_bytes)> progress = {};
};

struct ConvertSummary {
  std::vector<std::string> warnings;
  int64_t num_tensors = 0;
  int64_t num_changed = 0;  ///< brought to another format
  int64_t num_parameters = 0;
  uint64_t source_bytes = 0;  ///< of tensors
  uint64_t file_bytes = 0;    ///< that were written
};

/// Writes `from` to the GGUF file `out`, which appears once it is whole. Metadata is kept, but for
/// what is about parts of a split file; `general.file_type` says the new type. Of a Hugging Face
/// directory the tokenizer is written too, rows of queries and keys in the order that GGUF files of
/// the architecture have, and the experts of a layer as one tensor. Which tensors change, and to
/// what, is as at load (quantization.h). Memory: a few megabytes besides the metadata.
///
/// Errors: invalid_argument (a file is there, or is the source); unsupported (all is quantised
/// already); corrupt_data (a weight that cannot be quantised; the source was written meanwhile);
/// resource_exhausted (disk); io_error; cancelled.
Result<ConvertSummary> convert_model(const Checkpoint& from, const std::string& out,
                                     const ConvertOptions& options);

}  // namespace headrace
