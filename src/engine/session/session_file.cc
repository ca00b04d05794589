// See session_file.h. Here: the form of the file. session_writer.cc writes it.
#include "engine/session/session_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "backend/kv_view.h"
#include "base/check.h"
#include "base/checked.h"
#include "checkpoint/quote_name.h"
#include "kv/block_hash.h"
#include "kv/cache_group.h"

namespace headrace {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kFixedBytes = 32;  // magic, version, reserved, file size
constexpr size_t kVersionAt = 16;
constexpr size_t kReservedAt = 20;
constexpr size_t kChecksumBytes = sizeof(ContentHash::Digest);
constexpr uint64_t kGroupBytes = 32;
constexpr uint64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr std::string_view kWayOut = "delete it, or give another name";

Error damaged(std::string what) {
  return {ErrorCode::corrupt_data, "the session file is damaged: " + std::move(what), "",
          std::string(kWayOut)};
}

template <class T>
T number_at(std::span<const std::byte> file, size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

/// Reads values up to the end of a stretch of bytes and never past it.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes, size_t at) : bytes_(bytes), at_(at) {}

  size_t at() const { return at_; }
  uint64_t bytes_left() const { return bytes_.size() - at_; }

  template <class T>
  Result<T> number(std::string_view what) {
    if (bytes_left() < sizeof(T)) return ends_inside(what);
    const T value = number_at<T>(bytes_, at_);
    at_ += sizeof(T);
    return value;
  }

  /// At most `most`.
  template <class T>
  Result<int64_t> number_up_to(std::string_view what, uint64_t most) {
    HEADRACE_ASSIGN(const T value, number<T>(what));
    if (value <= most) return static_cast<int64_t>(value);
    return damaged(std::string(what) + " is " + std::to_string(value) + ", more than " +
                   std::to_string(most));
  }

  Result<std::span<const std::byte>> bytes(std::string_view what, uint64_t count) {
    if (count > bytes_left()) return ends_inside(what);
    const auto out = bytes_.subspan(at_, static_cast<size_t>(count));
    at_ += out.size();
    return out;
  }

  template <class Length>
  Result<std::string> text(std::string_view what, uint64_t most) {
    HEADRACE_ASSIGN(const int64_t length,
                    number_up_to<Length>("the length of " + std::string(what), most));
    HEADRACE_ASSIGN(const auto found, bytes(what, static_cast<uint64_t>(length)));
    return std::string(reinterpret_cast<const char*>(found.data()), found.size());
  }

 private:
  static Error ends_inside(std::string_view what) {
    return damaged("it ends inside " + std::string(what));
  }

  std::span<const std::byte> bytes_;
  size_t at_;
};

Result<SessionOrigin> parse_origin(Cursor& cursor) {
  SessionOrigin origin;
  const std::pair<std::string*, std::string_view> texts[] = {
      {&origin.model, "the model's name"},
      {&origin.model_fingerprint, "the model's fingerprint"},
      {&origin.tokenizer_fingerprint, "the tokenizer's fingerprint"},
      {&origin.device, "the device"},
      {&origin.kv_type, "the KV type"}};
  for (const auto& [text, what] : texts) {
    HEADRACE_ASSIGN(*text, cursor.text<uint32_t>(what, kMaxSessionTextBytes));
  }
  HEADRACE_ASSIGN(origin.block_tokens,
                  cursor.number_up_to<uint32_t>("the size of a block in tokens", kMaxBlockTokens));
  if (origin.block_tokens == 0) return damaged("its blocks have no tokens");
  return origin;
}

Result<void> parse_groups(Cursor& cursor, SessionHeader& header) {
  const uint64_t most = cursor.bytes_left() / kGroupBytes;
  HEADRACE_ASSIGN(const int64_t num_groups,
                  cursor.number_up_to<uint32_t>("the number of groups", most));
  for (int64_t i = 0; i < num_groups; ++i) {
    SessionOrigin::Group& group = header.origin.groups.emplace_back();
    SessionHeader::Blocks& blocks = header.blocks.emplace_back();
    HEADRACE_ASSIGN(group.window, cursor.number_up_to<uint32_t>("a window", kMaxInt32));
    HEADRACE_TRY(cursor.number_up_to<uint32_t>("what is reserved", 0));
    HEADRACE_ASSIGN(group.block_bytes, cursor.number<uint64_t>("the size of a block"));
    HEADRACE_ASSIGN(blocks.first, cursor.number_up_to<uint64_t>("a first block", kMaxInt32));
    HEADRACE_ASSIGN(blocks.count, cursor.number_up_to<uint64_t>("the number of blocks", kMaxInt32));
  }
  return {};
}

Result<void> parse_tokens(Cursor& cursor, SessionHeader& header) {
  const uint64_t most = std::min<uint64_t>(cursor.bytes_left() / sizeof(TokenId), kMaxInt32);
  HEADRACE_ASSIGN(const int64_t count, cursor.number_up_to<uint64_t>("the number of tokens", most));
  HEADRACE_ASSIGN(const auto ids,
                  cursor.bytes("the tokens", static_cast<uint64_t>(count) * sizeof(TokenId)));
  header.tokens.resize(static_cast<size_t>(count));
  if (!ids.empty()) std::memcpy(header.tokens.data(), ids.data(), ids.size());
  const auto is_none = [](TokenId id) { return id < 0; };
  if (std::ranges::any_of(header.tokens, is_none)) return damaged("a token's id is below 0");
  HEADRACE_ASSIGN(header.note, cursor.text<uint64_t>("the note", kMaxSessionNoteBytes));
  return {};
}

/// Whether the blocks are those that the tokens need.
Result<void> check_blocks(const SessionHeader& header) {
  const auto num_tokens = static_cast<int64_t>(header.tokens.size());
  const int64_t block_tokens = header.origin.block_tokens;
  const int64_t num_full = num_tokens / block_tokens;
  for (size_t i = 0; i < header.blocks.size(); ++i) {
    const CacheGeometry geometry{block_tokens, header.origin.groups[i].window};
    const SessionHeader::Blocks& blocks = header.blocks[i];
    if (blocks.first > geometry.first_block_read(num_full * block_tokens) ||
        blocks.first + blocks.count != ceil_div(num_tokens, block_tokens)) {
      return damaged("it has other blocks than its tokens need");
    }
  }
  return {};
}

Result<void> check_envelope(std::span<const std::byte> file) {
  const size_t num_magic = std::min(file.size(), kSessionMagic.size());
  if (num_magic == 0 || std::memcmp(file.data(), kSessionMagic.data(), num_magic) != 0) {
    return Error{ErrorCode::corrupt_data, "this is no session file", "", std::string(kWayOut)};
  }
  const auto cut = [&](const std::string& of_all) {
    return Error{ErrorCode::corrupt_data,
                 "the session file is cut after " + std::to_string(file.size()) + of_all + " bytes",
                 "", std::string(kWayOut)};
  };
  if (file.size() < kFixedBytes + kChecksumBytes) return cut("");
  const auto version = number_at<uint32_t>(file, kVersionAt);
  if (version > kSessionVersion) {
    return Error{ErrorCode::unsupported,
                 "the session file is of version " + std::to_string(version) +
                     ", and this program reads version " + std::to_string(kSessionVersion),
                 "", "use the newer headrace that wrote it, or give another name"};
  }
  const auto file_bytes = number_at<uint64_t>(file, kSessionSizeAt);
  if (file_bytes > file.size()) return cut(" of " + std::to_string(file_bytes));
  if (file_bytes < file.size()) return damaged("there are bytes behind its end");
  ContentHash hash;
  hash.add(file.first(file.size() - kChecksumBytes));
  const auto found = hash.digest();
  if (std::memcmp(found.data(), file.last(kChecksumBytes).data(), kChecksumBytes) != 0) {
    return damaged("its checksum does not match");
  }
  if (version == 0) return damaged("its version is 0");
  if (number_at<uint32_t>(file, kReservedAt) != 0) return damaged("what is reserved is in use");
  return {};
}

}  // namespace

std::span<const std::byte> SessionFile::block(size_t group, int64_t index) const {
  const SessionHeader::Blocks& has = header.blocks.at(group);
  HEADRACE_CHECK(index >= has.first && index - has.first < has.count);
  const auto bytes = static_cast<size_t>(header.origin.groups[group].block_bytes);
  return blocks[group].subspan(static_cast<size_t>(index - has.first) * bytes, bytes);
}

Result<SessionFile> parse_session(std::span<const std::byte> file) {
  if (file.size() < kFixedBytes + kChecksumBytes) return damaged("it is too short");
  Cursor cursor(file.first(file.size() - kChecksumBytes), kFixedBytes);
  SessionFile out;
  HEADRACE_ASSIGN(out.header.origin, parse_origin(cursor));
  HEADRACE_TRY(parse_groups(cursor, out.header));
  HEADRACE_TRY(parse_tokens(cursor, out.header));
  HEADRACE_TRY(check_blocks(out.header));
  const auto padded = checked_align_up(cursor.at(), kSessionAlignment);
  HEADRACE_ASSIGN(const auto padding, cursor.bytes("the padding", padded.value() - cursor.at()));
  const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
  if (std::ranges::any_of(padding, is_set)) return damaged("its padding is not zero");
  for (size_t i = 0; i < out.header.blocks.size(); ++i) {
    const auto size = checked_mul<uint64_t>(static_cast<uint64_t>(out.header.blocks[i].count),
                                            out.header.origin.groups[i].block_bytes);
    if (!size) return damaged("its blocks are too large");
    HEADRACE_ASSIGN(const auto bytes, cursor.bytes("the blocks", *size));
    out.blocks.push_back(bytes);
  }
  if (cursor.bytes_left() != 0) return damaged("there are bytes behind its blocks");
  return out;
}

Result<SessionFile> read_session(std::span<const std::byte> file) {
  HEADRACE_TRY(check_envelope(file));
  return parse_session(file);
}

Result<void> check_origin(const SessionOrigin& found, const SessionOrigin& expected) {
  const auto differs = [](std::string message, std::string hint) {
    return Error{ErrorCode::mismatch, std::move(message), "", std::move(hint)};
  };
  const std::string other_name = ", or give another name";
  if (found.model_fingerprint != expected.model_fingerprint) {
    const bool same_name = found.model == expected.model;
    return differs(
        "the session was made with another model: " +
            (same_name ? "one of the same name, " + quote_name(found.model) + ", and other weights"
                       : quote_name(found.model) + ", expected " + quote_name(expected.model)),
        "use the model that it was made with" + other_name);
  }
  if (found.tokenizer_fingerprint != expected.tokenizer_fingerprint) {
    return differs("the session was made with another tokenizer",
                   "use the tokenizer that it was made with" + other_name);
  }
  if (found.kv_type != expected.kv_type) {
    return differs("the session's KV type is " + quote_name(found.kv_type) + ", the model's here " +
                       quote_name(expected.kv_type),
                   "open the model with " +
                       (kv_type_named(found.kv_type) ? "--kv-type " + found.kv_type
                                                     : std::string("that KV type")) +
                       other_name);
  }
  if (found.block_tokens != expected.block_tokens) {
    return differs("the session's KV blocks have " + std::to_string(found.block_tokens) +
                       " tokens, here they have " + std::to_string(expected.block_tokens),
                   "open the model with blocks of that size" + other_name);
  }
  if (found.groups != expected.groups) {
    return differs("the session's KV cache is of another shape",
                   "use the model that it was made with" + other_name);
  }
  if (found.device != expected.device) {
    return differs(
        "the session was computed by " + quote_name(found.device) + ", here it is " +
            quote_name(expected.device) + ", whose results differ in the last bits",
        "use the same instruction set, where there is one to choose (--isa)" + other_name);
  }
  return {};
}

}  // namespace headrace
