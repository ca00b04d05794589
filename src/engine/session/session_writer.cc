// See session_file.h. Here: writing.
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/os/save_target.h"
#include "engine/session/session_file.h"

namespace headrace {
namespace {

/// Values one after the other.
class Head {
 public:
  template <class T>
  void number(uint64_t value) {
    const auto narrow = static_cast<T>(value);
    HEADRACE_CHECK_EQ(uint64_t{narrow}, value);
    bytes(std::as_bytes(std::span(&narrow, 1)));
  }
  void bytes(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }
  void text(std::string_view text) { bytes(std::as_bytes(std::span(text.data(), text.size()))); }
  void short_text(std::string_view text_in) {
    HEADRACE_CHECK_LE(text_in.size(), kMaxSessionTextBytes);
    number<uint32_t>(text_in.size());
    text(text_in);
  }
  void pad() { bytes_.resize(checked_align_up(bytes_.size(), kSessionAlignment).value()); }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

uint64_t blocks_bytes(const SessionHeader& header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < header.blocks.size(); ++i) {
    const auto bytes = checked_mul<uint64_t>(static_cast<uint64_t>(header.blocks[i].count),
                                             header.origin.groups[i].block_bytes);
    sum = checked_add(sum, bytes.value()).value();  // they are in memory
  }
  return sum;
}

/// The error names the file that the user named.
Error about(Error error, const std::string& path) {
  error.where = path;
  error.hint = error.code == ErrorCode::resource_exhausted
                   ? "make room on the disk, or give a name on another one"
                   : "check the folder and its permissions";
  return error;
}

}  // namespace

std::vector<std::byte> session_head(const SessionHeader& header) {
  const SessionOrigin& origin = header.origin;
  HEADRACE_CHECK_EQ(origin.groups.size(), header.blocks.size());
  HEADRACE_CHECK_LE(header.note.size(), kMaxSessionNoteBytes);
  Head head;
  head.text(kSessionMagic);
  head.number<uint32_t>(kSessionVersion);
  head.number<uint32_t>(0);
  head.number<uint64_t>(0);  // the file's size, below
  for (const std::string* text : {&origin.model, &origin.model_fingerprint,
                                  &origin.tokenizer_fingerprint, &origin.device, &origin.kv_type}) {
    head.short_text(*text);
  }
  head.number<uint32_t>(static_cast<uint64_t>(origin.block_tokens));
  head.number<uint32_t>(origin.groups.size());
  for (size_t i = 0; i < origin.groups.size(); ++i) {
    head.number<uint32_t>(static_cast<uint64_t>(origin.groups[i].window));
    head.number<uint32_t>(0);
    head.number<uint64_t>(origin.groups[i].block_bytes);
    head.number<uint64_t>(static_cast<uint64_t>(header.blocks[i].first));
    head.number<uint64_t>(static_cast<uint64_t>(header.blocks[i].count));
  }
  head.number<uint64_t>(header.tokens.size());
  head.bytes(std::as_bytes(std::span(header.tokens)));
  head.number<uint64_t>(header.note.size());
  head.text(header.note);
  head.pad();
  std::vector<std::byte> bytes = head.take();
  const uint64_t size = bytes.size() + blocks_bytes(header) + sizeof(ContentHash::Digest);
  std::memcpy(bytes.data() + kSessionSizeAt, &size, sizeof(size));
  return bytes;
}

Result<SessionWriter> SessionWriter::create(const std::string& path) {
  HEADRACE_ASSIGN(std::string target, save_target(path, kSessionMagic, "session file"));
  auto file = AtomicFile::create_beside(target, FileAccess::owner);
  if (!file.ok()) return about(std::move(file).error(), path);
  return SessionWriter(std::move(file).value(), path, std::move(target));
}

Result<void> SessionWriter::write(std::span<const std::byte> bytes) {
  if (auto put = out_.write(bytes); !put.ok()) return about(std::move(put).error(), path_);
  return {};
}

Result<void> SessionWriter::begin(const SessionHeader& header) {
  const std::vector<std::byte> head = session_head(header);
  bytes_left_ = blocks_bytes(header);
  hash_.add(head);
  return write(head);
}

Result<void> SessionWriter::add_block(std::span<const std::byte> block) {
  HEADRACE_CHECK_LE(block.size(), bytes_left_);
  bytes_left_ -= block.size();
  hash_.add(block);
  return write(block);
}

Result<void> SessionWriter::finish() {
  if (bytes_left_ != 0) return Error{ErrorCode::internal, "blocks are missing", path_, ""};
  HEADRACE_TRY(write(hash_.digest()));
  if (auto put = out_.commit(target_); !put.ok()) return about(std::move(put).error(), path_);
  return {};
}

}  // namespace headrace
