#include "app/kl_base.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/checked.h"
#include "base/os/save_target.h"
#include "sampling/logprobs.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic = "HRKLBAS1";
constexpr size_t kDigestBytes = 128;
constexpr size_t kHeaderBytes = 8 + 4 * 8 + kDigestBytes;
constexpr size_t kRowHeadBytes = 12;
constexpr float kMaxCode = 65535.0F;
/// Masked tokens (-Inf) are stored as this far below the best; exp(-100) adds nothing to any sum.
constexpr float kMaxDepth = 100.0F;

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::optional<uint64_t> row_bytes_of(uint64_t vocab_size) {
  const auto codes = checked_mul<uint64_t>(vocab_size, 2);
  const auto sum = codes ? checked_add<uint64_t>(*codes, kRowHeadBytes) : std::nullopt;
  return sum ? checked_align_up(*sum, 4) : std::nullopt;
}

/// The error names the file that the user named, and a way out.
Error about(Error error, const std::string& path) {
  error.where = path;
  error.hint = "check the folder, its permissions and the free space";
  return error;
}

bool has_magic(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

/// The file to write for a `path` that a user named.
Result<std::string> target_of(const std::string& path) {
  return save_target(path, kMagic, "file of saved log-probabilities");
}

Error corrupt(const std::string& path, std::string message) {
  return {ErrorCode::corrupt_data, std::move(message), path,
          "write it again with perplexity --save-base"};
}

}  // namespace

Result<void> KlBaseWriter::check_target(const std::string& path) {
  const auto target = target_of(path);
  if (!target.ok()) return target.error();
  return {};
}

Result<KlBaseWriter> KlBaseWriter::create(const std::string& path, const KlBaseHeader& header,
                                          std::span<const TokenId> ids) {
  HEADRACE_CHECK_EQ(static_cast<int64_t>(ids.size()), header.num_chunks * header.chunk_tokens);
  HEADRACE_CHECK_LE(header.tokenizer_digest.size(), kDigestBytes);
  HEADRACE_ASSIGN(std::string target, target_of(path));
  auto file = AtomicFile::create_beside(target);
  if (!file.ok()) return about(std::move(file).error(), path);
  KlBaseWriter writer(std::move(file).value(), std::move(target));
  writer.vocab_size_ = header.vocab_size;
  writer.rows_left_ = header.num_chunks * header.rows_per_chunk;
  writer.row_.resize(row_bytes_of(static_cast<uint64_t>(header.vocab_size)).value());

  std::vector<std::byte> head(kHeaderBytes);
  std::memcpy(head.data(), kMagic.data(), kMagic.size());
  put(head.data() + 8, static_cast<uint64_t>(header.vocab_size));
  put(head.data() + 16, static_cast<uint64_t>(header.num_chunks));
  put(head.data() + 24, static_cast<uint64_t>(header.chunk_tokens));
  put(head.data() + 32, static_cast<uint64_t>(header.rows_per_chunk));
  std::memcpy(head.data() + 40, header.tokenizer_digest.data(), header.tokenizer_digest.size());
  for (const auto part : {std::span<const std::byte>(head), std::as_bytes(ids)}) {
    if (auto put = writer.out_.write(part); !put.ok()) return about(std::move(put).error(), path);
  }
  return writer;
}

Result<void> KlBaseWriter::add_row(std::span<const float> logits, double normalizer) {
  HEADRACE_CHECK_EQ(static_cast<int64_t>(logits.size()), vocab_size_);
  HEADRACE_CHECK_GT(rows_left_, 0);
  const auto [lowest_at, highest_at] = std::minmax_element(logits.begin(), logits.end());
  const float highest = *highest_at;
  const float depth = std::min(highest - *lowest_at, kMaxDepth);
  put(row_.data(), static_cast<float>(static_cast<double>(highest) - normalizer));
  put(row_.data() + 4, depth);
  put(row_.data() + 8, argmax(logits));
  const float inverse = depth > 0 ? 1.0F / depth : 0.0F;
  std::byte* at = row_.data() + kRowHeadBytes;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float share = std::min((highest - logits[i]) * inverse, 1.0F);
    put(at + 2 * i, static_cast<uint16_t>(std::sqrt(share) * kMaxCode + 0.5F));
  }
  if (auto put = out_.write(row_); !put.ok()) return about(std::move(put).error(), path_);
  --rows_left_;
  return {};
}

Result<void> KlBaseWriter::finish() {
  if (rows_left_ != 0) return Error{ErrorCode::internal, "rows are missing", path_, ""};
  if (auto put = out_.commit(path_); !put.ok()) return about(std::move(put).error(), path_);
  return {};
}

Result<KlBaseReader> KlBaseReader::open(const std::string& path) {
  HEADRACE_ASSIGN(MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() < kHeaderBytes || !has_magic(bytes)) {
    return corrupt(path, "not a file of saved log-probabilities");
  }
  uint64_t numbers[4];
  std::memcpy(numbers, bytes.data() + 8, sizeof numbers);
  for (const uint64_t number : numbers) {
    if (number == 0 || number > INT32_MAX) {
      return corrupt(path, "the header has an impossible count, " + std::to_string(number));
    }
  }
  // Each count is below 2^31, so that products of two fit 64 bits; of three they may not.
  const auto row_bytes = row_bytes_of(numbers[0]);
  const auto rows_bytes = checked_mul<uint64_t>(numbers[1] * numbers[3], *row_bytes);
  const auto ids_bytes = checked_mul<uint64_t>(numbers[1] * numbers[2], sizeof(TokenId));
  const auto body = rows_bytes && ids_bytes ? checked_add(*rows_bytes, *ids_bytes) : std::nullopt;
  const auto total = body ? checked_add<uint64_t>(*body, kHeaderBytes) : std::nullopt;
  if (!total || *total != bytes.size()) {
    return corrupt(path, "the file has " + std::to_string(bytes.size()) +
                             " bytes, its header says " +
                             (total ? std::to_string(*total) : "more than can be"));
  }
  KlBaseReader reader(std::move(file));
  KlBaseHeader& header = reader.header_;
  header.vocab_size = static_cast<int64_t>(numbers[0]);
  header.num_chunks = static_cast<int64_t>(numbers[1]);
  header.chunk_tokens = static_cast<int64_t>(numbers[2]);
  header.rows_per_chunk = static_cast<int64_t>(numbers[3]);
  const auto* digest = reinterpret_cast<const char*>(bytes.data() + 40);
  header.tokenizer_digest.assign(digest, std::find(digest, digest + kDigestBytes, '\0'));
  reader.ids_.resize(static_cast<size_t>(numbers[1] * numbers[2]));
  std::memcpy(reader.ids_.data(), bytes.data() + kHeaderBytes, *ids_bytes);
  reader.rows_offset_ = kHeaderBytes + *ids_bytes;
  reader.row_bytes_ = *row_bytes;
  return reader;
}

Result<void> KlBaseReader::check(const std::string& path) {
  const auto opened = open(path);
  if (!opened.ok()) return opened.error();
  return {};
}

TokenId KlBaseReader::read_row(int64_t index, std::span<float> logprobs) const {
  HEADRACE_CHECK(index >= 0 && index < header_.num_chunks * header_.rows_per_chunk);
  HEADRACE_CHECK_EQ(static_cast<int64_t>(logprobs.size()), header_.vocab_size);
  const std::byte* row =
      file_.bytes().data() + rows_offset_ + static_cast<size_t>(index) * row_bytes_;
  const float highest = get<float>(row);
  const float depth = get<float>(row + 4);
  const std::byte* codes = row + kRowHeadBytes;
  const float step = 1.0F / kMaxCode;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const float share = static_cast<float>(get<uint16_t>(codes + 2 * i)) * step;
    logprobs[i] = highest - depth * (share * share);
  }
  return get<TokenId>(row + 8);
}

}  // namespace headrace
