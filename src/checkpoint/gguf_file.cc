// See gguf_file.h.
#include "checkpoint/gguf_file.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/gguf_cursor.h"
#include "checkpoint/gguf_metadata.h"
#include "checkpoint/gguf_tensors.h"

namespace headrace {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr int64_t kDefaultAlignment = 32;

Error header_error(ErrorCode code, uint64_t offset, std::string message, std::string hint = "") {
  return Error{code, std::move(message), "header at " + GgufCursor::byte_place(offset),
               std::move(hint)};
}

Result<uint32_t> read_version(GgufCursor& cursor) {
  const uint64_t offset = cursor.offset();
  HEADRACE_ASSIGN(const auto version, cursor.read<uint32_t>("the version"));
  if (version == 2 || version == 3) return version;
  if (version != 0 && (version & 0xffff) == 0) {
    return header_error(ErrorCode::unsupported, offset,
                        "a big-endian GGUF file, expected a little-endian one",
                        "convert it with gguf-convert-endian of PyPI's gguf package");
  }
  return header_error(ErrorCode::unsupported, offset,
                      "GGUF version " + std::to_string(version) + ", expected 2 or 3",
                      version == 1 ? "make the file anew with a current converter" : "");
}

/// A count from the header, each thing taking `smallest` bytes or more of what is left.
Result<uint64_t> read_count(GgufCursor& cursor, std::string_view what, uint64_t smallest) {
  const uint64_t offset = cursor.offset();
  HEADRACE_ASSIGN(const auto count, cursor.read<uint64_t>(what));
  const uint64_t most = cursor.bytes_left() / smallest;
  if (count <= most) return count;
  return header_error(ErrorCode::corrupt_data, offset,
                      std::string(what) + " is " + std::to_string(count) + ", but the " +
                          std::to_string(cursor.bytes_left()) + " bytes left hold at most " +
                          std::to_string(most),
                      kCutShortHint);
}

/// `general.alignment`. Below 8 a tensor's floats could not be read in place.
Result<uint64_t> alignment_of(const Metadata& metadata, uint64_t metadata_offset) {
  constexpr std::string_view kKey = "general.alignment";
  const std::string place = GgufCursor::byte_place(metadata_offset);
  auto found = metadata.get_int(kKey);
  if (!found.ok()) return std::move(found).error().at("metadata at " + place);
  const int64_t value = found->value_or(kDefaultAlignment);
  constexpr int64_t kLargest = int64_t{1} << 30;
  if (value >= 8 && value <= kLargest && std::has_single_bit(static_cast<uint64_t>(value))) {
    return static_cast<uint64_t>(value);
  }
  return Error{ErrorCode::corrupt_data,
               "must be a power of two from 8 to 2^30, found " + std::to_string(value),
               "metadata at " + place + ": key '" + std::string(kKey) + "'", ""};
}

}  // namespace

bool is_gguf(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<GgufFile> read_gguf(std::span<const std::byte> file, HeapBudget& budget) {
  if (!is_gguf(file)) {
    return header_error(ErrorCode::corrupt_data, 0,
                        "expected a GGUF file, which begins with 'GGUF'");
  }
  GgufCursor cursor(file);
  HEADRACE_TRY(cursor.read<uint32_t>("the magic"));
  GgufFile out;
  HEADRACE_ASSIGN(out.version, read_version(cursor));
  HEADRACE_ASSIGN(const auto num_tensors,
                  read_count(cursor, "the tensor count", kGgufSmallestRecord));
  HEADRACE_ASSIGN(const auto num_pairs, read_count(cursor, "the key count", kGgufSmallestPair));
  const uint64_t metadata_offset = cursor.offset();
  HEADRACE_ASSIGN(GgufMetadata metadata, read_gguf_metadata(cursor, num_pairs, budget));
  out.metadata = std::move(metadata.values);
  out.texts = std::move(metadata.texts);
  HEADRACE_ASSIGN(const uint64_t alignment, alignment_of(out.metadata, metadata_offset));
  HEADRACE_ASSIGN(out.tensors, read_gguf_tensors(cursor, num_tensors, alignment, file, budget));
  return out;
}

}  // namespace headrace
