// See kv_storage.h.
#include "backend/cpu/kv_storage.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "backend/cpu/kernels/attention_args.h"
#include "base/checked.h"
#include "base/os/large_pages.h"

namespace headrace {
namespace {

constexpr uint64_t kPageAlignment = 64;

class CpuKvStorage final : public KvStorage {
 public:
  CpuKvStorage(const KvPageLayout& layout, int64_t num_layers, int64_t num_blocks)
      : layout_(layout), num_layers_(num_layers), num_blocks_(num_blocks) {
    HEADRACE_CHECK(layout.num_kv_heads > 0 && layout.head_dim > 0 &&
                   layout.head_dim <= kMaxHeadDim && layout.block_tokens > 0);
    HEADRACE_CHECK_EQ(layout.block_tokens % kKeyPanelTokens, 0);
    HEADRACE_CHECK(num_layers >= 0 && num_blocks >= 0);
    const auto page = checked_align_up(layout.page_bytes(), kPageAlignment);
    const auto block =
        page ? checked_mul<uint64_t>(*page, static_cast<uint64_t>(num_layers)) : std::nullopt;
    const auto all =
        block ? checked_mul<uint64_t>(*block, static_cast<uint64_t>(num_blocks)) : std::nullopt;
    const auto padded = all ? checked_add<uint64_t>(*all, 2 * kPageAlignment) : std::nullopt;
    if (!padded) throw std::bad_alloc();
    page_bytes_ = static_cast<size_t>(*page);
    block_bytes_ = static_cast<size_t>(*block);
    bytes_ = static_cast<size_t>(*all);
    // calloc leaves large memory untouched until it is written.
    memory_.reset(static_cast<std::byte*>(std::calloc(1, static_cast<size_t>(*padded))));
    if (!memory_) throw std::bad_alloc();
    advise_large_pages(memory_.get(), static_cast<size_t>(*padded));
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    base_ = memory_.get() + (kPageAlignment - address % kPageAlignment) % kPageAlignment;
  }

  KvView layer(int64_t layer_in_group) const override {
    HEADRACE_CHECK(layer_in_group >= 0 && layer_in_group < num_layers_);
    return {base_ + static_cast<size_t>(layer_in_group) * page_bytes_, block_bytes_, layout_};
  }

  size_t bytes() const override { return bytes_; }

  void copy_block(int32_t from, int32_t to) override {
    HEADRACE_CHECK(from >= 0 && from < num_blocks_ && to >= 0 && to < num_blocks_ && from != to);
    std::memcpy(base_ + static_cast<size_t>(to) * block_bytes_,
                base_ + static_cast<size_t>(from) * block_bytes_, block_bytes_);
  }

  void read_block(int32_t block, int64_t num_tokens, std::span<std::byte> out) const override {
    check_block(block, out.size());
    HEADRACE_CHECK(num_tokens >= 0 && num_tokens <= layout_.block_tokens);
    for (int64_t i = 0; i < num_layers_; ++i) {
      std::byte* page = out.data() + static_cast<size_t>(i) * layout_.page_bytes();
      std::memcpy(page, layer(i).page(block), layout_.page_bytes());
      if (num_tokens < layout_.block_tokens) clear_slots(layout_, num_tokens, page);
    }
  }

  void write_block(int32_t block, std::span<const std::byte> in) override {
    check_block(block, in.size());
    for (int64_t i = 0; i < num_layers_; ++i) {
      std::memcpy(layer(i).page(block), in.data() + static_cast<size_t>(i) * layout_.page_bytes(),
                  layout_.page_bytes());
    }
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };

  void check_block(int32_t block, size_t size) const {
    HEADRACE_CHECK(block >= 0 && block < num_blocks_);
    HEADRACE_CHECK_EQ(size, static_cast<size_t>(num_layers_) * layout_.page_bytes());
  }

  KvPageLayout layout_;
  int64_t num_layers_ = 0;
  int64_t num_blocks_ = 0;
  size_t page_bytes_ = 0;
  size_t block_bytes_ = 0;
  size_t bytes_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
  std::byte* base_ = nullptr;
};

}  // namespace

std::unique_ptr<KvStorage> allocate_cpu_kv(const KvPageLayout& layout, int64_t num_layers,
                                           int64_t num_blocks) {
  return std::make_unique<CpuKvStorage>(layout, num_layers, num_blocks);
}

}  // namespace headrace
