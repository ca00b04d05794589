// See gguf_metadata.h.
#include "checkpoint/gguf_metadata.h"

#include <utility>

#include "checkpoint/gguf_value.h"
#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

// A map node with its key and value; the key's bytes come on top.
constexpr uint64_t kPairBytes = 160;

Result<void> read_pair(GgufCursor& cursor, HeapBudget& budget, GgufMetadata& out,
                       std::string_view& key) {
  HEADRACE_ASSIGN(key, cursor.read_string("the key", kGgufLongestKey));
  if (key.empty()) {
    return Error{ErrorCode::corrupt_data, "the key is empty", "", ""};
  }
  if (out.values.find(key) != nullptr) {
    return Error{ErrorCode::corrupt_data, "the key appears twice", "", ""};
  }
  HEADRACE_TRY(budget.take(1, kPairBytes + key.size()));
  HEADRACE_ASSIGN(const auto type, cursor.read<uint32_t>("the value's type"));
  HEADRACE_ASSIGN(MetaValue value, read_gguf_value(cursor, type, budget, out.texts));
  out.values.set(std::string(key), std::move(value));
  return {};
}

}  // namespace

Result<GgufMetadata> read_gguf_metadata(GgufCursor& cursor, uint64_t count, HeapBudget& budget) {
  GgufMetadata out;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = cursor.offset();
    std::string_view key;
    auto status = read_pair(cursor, budget, out, key);
    if (status.ok()) continue;
    const std::string name = key.empty() ? "number " + std::to_string(i) : quote_name(key);
    return std::move(status).error().at("key " + name + " at " + GgufCursor::byte_place(offset));
  }
  return out;
}

}  // namespace headrace
