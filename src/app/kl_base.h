// The file that `perplexity --save-base` writes: every scored position's whole distribution, to
// compare another path or format with. Owns the file format. Must not know models.
//
// Little-endian. Header: magic "HRKLBAS1"; u64 vocab_size, num_chunks, chunk_tokens, scored rows a
// chunk; 128 bytes of tokenizer digest, zero-padded. Then i32 ids [num_chunks][chunk_tokens]. Then
// one row a scored position, in order: f32 highest log-probability, f32 depth (highest minus
// lowest), i32 most likely id, u16 code [vocab_size], padded to 4 bytes. A code c stands for the
// log-probability highest - depth * (c / 65535)^2: the square puts the resolution where the
// probability is. With a depth of 40, a token of probability 1/e is off by at most 1e-4 and the
// likely ones by less; errors have either sign, so the mean of 255 positions is far below 1e-5.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/os/atomic_file.h"
#include "base/os/mapped_file.h"
#include "headrace/params.h"
#include "headrace/result.h"

namespace headrace {

struct KlBaseHeader {
  int64_t vocab_size = 0;
  int64_t num_chunks = 0;
  int64_t chunk_tokens = 0;
  int64_t rows_per_chunk = 0;
  std::string tokenizer_digest;

  bool operator==(const KlBaseHeader&) const = default;
};

/// Writes under a new name beside `path`; the file takes its name in finish(). Destroyed before
/// that, nothing is left behind.
class KlBaseWriter {
 public:
  /// Whether `path` may be written: nothing has that name, or a file of this format. Errors:
  /// invalid_argument (anything else is there), io_error (no folder, unreadable).
  static Result<void> check_target(const std::string& path);

  /// Errors: those of check_target; io_error, resource_exhausted (a full disk).
  static Result<KlBaseWriter> create(const std::string& path, const KlBaseHeader& header,
                                     std::span<const TokenId> ids);
  KlBaseWriter(KlBaseWriter&&) = default;
  KlBaseWriter& operator=(KlBaseWriter&&) = delete;

  /// The next row: logits [vocab_size] and their log_sum_exp. Errors: io_error, resource_exhausted
  /// (a full disk).
  Result<void> add_row(std::span<const float> logits, double normalizer);
  /// Errors: those of add_row; internal if rows are missing.
  Result<void> finish();

 private:
  KlBaseWriter(AtomicFile out, std::string path) : out_(std::move(out)), path_(std::move(path)) {}

  AtomicFile out_;
  std::string path_;
  int64_t vocab_size_ = 0;
  int64_t rows_left_ = 0;
  std::vector<std::byte> row_;
};

class KlBaseReader {
 public:
  /// Errors: not_found, io_error, corrupt_data (magic, sizes that contradict the file's).
  static Result<KlBaseReader> open(const std::string& path);
  /// The errors of open().
  static Result<void> check(const std::string& path);

  const KlBaseHeader& header() const { return header_; }
  /// [num_chunks * chunk_tokens]
  std::span<const TokenId> ids() const { return ids_; }
  /// Decodes row `index` to log-probabilities [vocab_size]; returns the most likely id.
  TokenId read_row(int64_t index, std::span<float> logprobs) const;

 private:
  explicit KlBaseReader(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  KlBaseHeader header_;
  std::vector<TokenId> ids_;
  size_t rows_offset_ = 0;
  size_t row_bytes_ = 0;
};

}  // namespace headrace
