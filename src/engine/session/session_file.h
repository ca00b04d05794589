// The file of a conversation's keys and values: what is in it, reading and writing. Must not know
// models, or who holds which block.
//
// Little-endian; a text is its length in bytes (u32), then the bytes.
//
//     magic              16 bytes, "headrace session"
//     version            u32, 1. A change of this layout, or of a page's (backend/kv_view.h), is
//                        another version
//     reserved           u32, 0
//     file size          u64, in bytes
//     origin             texts: name of the model, fingerprint of the model, of the tokenizer,
//                        device, KV type; u32 tokens of a block
//     groups             u32 count, then for each cache group
//                          u32 window, u32 reserved (0), u64 bytes of a block,
//                          u64 index of the first block, u64 number of blocks
//     tokens             u64 count, i32 each
//     note               u64 length, then the bytes
//     padding            zeros to a multiple of 64
//     blocks             group by group: block by block, in the form of KvStorage::read_block
//     checksum           16 bytes: base/content_hash of everything before it
//
// Block i of a group has the tokens [i * block_tokens, (i + 1) * block_tokens). A group without a
// window has the blocks of all tokens, the last of which may be begun only; one with a window at
// least those that the next token reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/os/atomic_file.h"
#include "headrace/result.h"
#include "headrace/token.h"

namespace headrace {

inline constexpr std::string_view kSessionMagic = "headrace session";
inline constexpr uint32_t kSessionVersion = 1;
inline constexpr size_t kMaxSessionNoteBytes = 16 << 20;
/// Where the file's size stands, and what the blocks are aligned to.
inline constexpr size_t kSessionSizeAt = 24;
inline constexpr uint64_t kSessionAlignment = 64;
/// Of a text of the origin.
inline constexpr size_t kMaxSessionTextBytes = 1024;

/// What made the keys and values. Those of two origins are not exchanged.
struct SessionOrigin {
  struct Group {
    int64_t window = 0;  ///< 0: none
    uint64_t block_bytes = 0;

    bool operator==(const Group&) const = default;
  };

  std::string model;  ///< its name, for people; two models may have the same
  std::string model_fingerprint;
  std::string tokenizer_fingerprint;
  std::string device;  ///< what computed them: results differ in the last bits
  std::string kv_type;
  int64_t block_tokens = 16;
  std::vector<Group> groups;

  bool operator==(const SessionOrigin&) const = default;
};

/// Error (mismatch): the first thing in which `found`, of a file, differs from `expected`, with the
/// way out.
Result<void> check_origin(const SessionOrigin& found, const SessionOrigin& expected);

struct SessionHeader {
  /// Blocks [first, first + count) of a group.
  struct Blocks {
    int64_t first = 0;
    int64_t count = 0;

    bool operator==(const Blocks&) const = default;
  };

  SessionOrigin origin;
  std::vector<TokenId> tokens;
  std::string note;            ///< of the caller, any bytes
  std::vector<Blocks> blocks;  ///< by group

  bool operator==(const SessionHeader&) const = default;
};

/// What the file is made of up to its blocks. Throws std::bad_alloc.
std::vector<std::byte> session_head(const SessionHeader& header);

struct SessionFile {
  SessionHeader header;
  std::vector<std::span<const std::byte>> blocks;  ///< by group; in the file

  /// Block `index` of a group, which must be there.
  std::span<const std::byte> block(size_t group, int64_t index) const;
};

/// Checks all of a file and says what is in it. Errors: corrupt_data (no session, cut, damaged),
/// unsupported (of a newer version). Throws std::bad_alloc; no more is allocated than the file is
/// long.
Result<SessionFile> read_session(std::span<const std::byte> file);

/// The same without a look at size and checksum, for who has seen to that. Nothing is read beyond
/// the end.
Result<SessionFile> parse_session(std::span<const std::byte> file);

/// Writes under a new name beside `path`; the file takes its name in finish(). Destroyed before
/// that, nothing is left behind. Only its owner may read it.
class SessionWriter {
 public:
  /// Errors: those of save_target; io_error, resource_exhausted (a full disk).
  static Result<SessionWriter> create(const std::string& path);

  /// First the header, then the blocks that it names, group by group. Errors: io_error,
  /// resource_exhausted.
  Result<void> begin(const SessionHeader& header);
  Result<void> add_block(std::span<const std::byte> block);
  /// Makes it durable. Errors: those of begin; internal, if blocks are missing.
  Result<void> finish();

 private:
  SessionWriter(AtomicFile out, std::string path, std::string target)
      : out_(std::move(out)), path_(std::move(path)), target_(std::move(target)) {}
  Result<void> write(std::span<const std::byte> bytes);

  AtomicFile out_;
  std::string path_;    // as the user named it
  std::string target_;  // behind symbolic links
  ContentHash hash_;
  uint64_t bytes_left_ = 0;
};

}  // namespace headrace
