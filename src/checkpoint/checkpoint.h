// A model's files, opened: metadata and named tensors, whatever the file format. Must not know
// models or backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/metadata.h"
#include "headrace/result.h"
#include "quant/format.h"

namespace headrace {

/// One tensor of a checkpoint. `shape` has the outermost dimension first: a matrix is
/// {rows, cols} and `cols` is contiguous. `data` points into the mapped file, and is in `format`
/// unless `is_made`: then the tensor is made of it, or of it and others, by Checkpoint::read.
struct CheckpointTensor {
  std::string name;  ///< GGUF's naming ("blk.0.attn_q.weight")
  Format format = Format::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  bool is_made = false;

  int64_t num_elements() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;  // checked when the file was opened
    return count;
  }
  /// Of the tensor in its format, wherever it lies.
  uint64_t num_bytes() const {
    const FormatTraits& traits = format_traits(format);
    return static_cast<uint64_t>(num_elements()) / traits.block_elements * traits.block_bytes;
  }
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  /// Path as the user gave it.
  virtual const std::string& path() const = 0;
  /// "GGUF v3", ...
  virtual std::string format_name() const = 0;
  virtual const Metadata& metadata() const = 0;
  virtual std::span<const CheckpointTensor> tensors() const = 0;
  /// Null if there is none of that name.
  virtual const CheckpointTensor* find(std::string_view name) const = 0;
  /// The tensor's bytes in its format; its `data`, unless it is made. What is made stays until the
  /// tensor is released. One caller at a time. Throws std::bad_alloc. Errors: what a tensor is made
  /// of cannot be read.
  virtual Result<std::span<const std::byte>> read(const CheckpointTensor& tensor) const {
    return tensor.data;
  }
  /// Whether it is a directory of files (Hugging Face), with the tokenizer in one of its own.
  virtual bool is_directory() const { return false; }
  /// Whether rows of query and key projections are in `halves` order, whatever GGUF files of the
  /// architecture have (RopeRows of model/loader.h).
  virtual bool keeps_rope_halves() const { return false; }
  /// Total bytes of the files.
  virtual uint64_t file_bytes() const = 0;
  /// Tells the system that a tensor's pages are not needed any more (it has been packed).
  virtual void release(const CheckpointTensor& tensor) const = 0;
  /// The same of all pages that were read so far; those that are needed after all are read again.
  virtual void release_all() const = 0;
  /// Error: corrupt_data, once bytes were read (as zeros) that a file lost while it was open.
  virtual Result<void> check_whole() const = 0;
  /// The same, and where a file has another size or was written since it was opened: what was read
  /// before this call is then not to be trusted. A system call a file.
  virtual Result<void> check_unchanged() const = 0;
};

/// Opens a model file by its magic (GGUF: also the first of a split set, "-00001-of-00005").
/// Errors name file, key or tensor, and offset. Vocabulary-only files (no tensors) are fine.
Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path);

}  // namespace headrace
