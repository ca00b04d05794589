// Feeds any bytes to the reader of session files, as they are and with the size and checksum that
// they should have.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "engine/session/session_file.h"

namespace {

using headrace::ContentHash;

void require(bool condition) {
  if (!condition) std::abort();
}

// Blocks lie in the file, and the head is the only one that says this.
void check(const headrace::SessionFile& read, std::span<const std::byte> file) {
  require(read.blocks.size() == read.header.blocks.size());
  for (size_t i = 0; i < read.blocks.size(); ++i) {
    const auto& blocks = read.header.blocks[i];
    if (blocks.count == 0) continue;
    const auto first = read.block(i, blocks.first);
    const auto last = read.block(i, blocks.first + blocks.count - 1);
    require(first.data() >= file.data());
    require(last.data() + last.size() <= file.data() + file.size());
  }
  const auto head = headrace::session_head(read.header);
  constexpr size_t kBegin = headrace::kSessionSizeAt + sizeof(uint64_t);
  require(head.size() <= file.size());
  require(std::memcmp(head.data() + kBegin, file.data() + kBegin, head.size() - kBegin) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of its own, of exactly this size for the sanitizer.
  const auto bytes = std::make_unique<std::byte[]>(size);
  if (size != 0) std::memcpy(bytes.get(), data, size);
  const std::span<std::byte> file(bytes.get(), size);

  const auto read = headrace::read_session(file);
  if (!read.ok()) require(!read.error().message.empty() && !read.error().hint.empty());
  const auto parsed = headrace::parse_session(file);
  require(parsed.ok() || !read.ok());
  if (!parsed.ok()) return 0;
  check(*parsed, file);

  const auto head = headrace::session_head(parsed->header);
  std::memcpy(file.data(), head.data(), headrace::kSessionSizeAt + sizeof(uint64_t));
  const size_t end = file.size() - sizeof(ContentHash::Digest);
  ContentHash hash;
  hash.add(file.first(end));
  const auto digest = hash.digest();
  std::memcpy(file.data() + end, digest.data(), digest.size());
  const auto sealed = headrace::read_session(file);
  require(sealed.ok() && sealed->header == parsed->header);
  return 0;
}
