// Writes the seed corpus of fuzz_session: `make_session_seeds fuzz/corpus/session`. Run by hand;
// the files are committed.
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "base/checked.h"
#include "engine/session/session_file.h"
#include "kv/cache_group.h"

using headrace::SessionHeader;

namespace {

SessionHeader header_of(size_t num_tokens, std::vector<headrace::SessionOrigin::Group> groups,
                        std::string note) {
  SessionHeader header;
  header.origin = {.model = "tiny",
                   .model_fingerprint = "0123",
                   .tokenizer_fingerprint = "4567",
                   .device = "cpu",
                   .kv_type = "q12",
                   .block_tokens = 4,
                   .groups = std::move(groups)};
  header.tokens.resize(num_tokens);
  std::iota(header.tokens.begin(), header.tokens.end(), 1);
  header.note = std::move(note);
  const auto size = static_cast<int64_t>(num_tokens);
  for (const auto& group : header.origin.groups) {
    const headrace::CacheGeometry geometry{4, group.window};
    const int64_t first = geometry.first_block_read(size / 4 * 4);
    header.blocks.push_back({first, headrace::ceil_div(size, 4) - first});
  }
  return header;
}

bool write(const std::string& path, const SessionHeader& header) {
  auto writer = headrace::SessionWriter::create(path);
  if (!writer.ok() || !writer->begin(header).ok()) return false;
  for (size_t i = 0; i < header.blocks.size(); ++i) {
    const std::vector<std::byte> block(header.origin.groups[i].block_bytes, std::byte{0x42});
    for (int64_t n = 0; n < header.blocks[i].count; ++n) {
      if (!writer->add_block(block).ok()) return false;
    }
  }
  return writer->finish().ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const bool done = write(folder + "empty", header_of(0, {}, "")) &&
                    write(folder + "one_group", header_of(7, {{0, 16}}, "")) &&
                    write(folder + "windows", header_of(40, {{0, 8}, {6, 8}, {100, 4}}, "")) &&
                    write(folder + "note", header_of(4, {{0, 1}}, R"({"messages":[]})")) &&
                    write(folder + "no_bytes", header_of(9, {{0, 0}, {1, 0}}, ""));
  return done ? 0 : 1;
}
