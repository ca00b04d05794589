// See weight_memory.h.
#include "backend/cpu/weight_memory.h"

#include <new>
#include <optional>

#include "base/checked.h"
#include "base/os/large_pages.h"

namespace headrace {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargePage = size_t{2} << 20;
// What is not used of the last chunk is never touched, so it costs no memory.
constexpr size_t kChunkBytes = size_t{64} << 20;

std::shared_ptr<std::byte> new_chunk(size_t bytes) {
  const auto rounded = checked_add<size_t>(bytes, kLargePage - 1);
  if (!rounded) throw std::bad_alloc();
  const size_t size = *rounded / kLargePage * kLargePage;
  constexpr std::align_val_t kAlign{kLargePage};
  const auto free = [](std::byte* data) { ::operator delete(data, kAlign); };
  std::shared_ptr<std::byte> chunk(static_cast<std::byte*>(::operator new(size, kAlign)), free);
  advise_large_pages(chunk.get(), size);
  return chunk;
}

}  // namespace

std::shared_ptr<std::byte> WeightMemory::allocate(size_t bytes) {
  const auto padded = checked_add<size_t>(bytes, kAlignment - 1);
  if (!padded) throw std::bad_alloc();
  const size_t size = *padded / kAlignment * kAlignment;
  if (size > kChunkBytes / 2) return new_chunk(size);
  if (chunk_ == nullptr || size > kChunkBytes - used_) {
    chunk_ = new_chunk(kChunkBytes);
    used_ = 0;
  }
  const std::shared_ptr<std::byte> out(chunk_, chunk_.get() + used_);
  used_ += size;
  return out;
}

}  // namespace headrace
