// Scenes for the tests of attention over pages: made-up sequences, and how they are run. Must not
// know what attention is to give: attention_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <memory>

#include "backend/cpu/attention.h"
#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/test_tensors.h"

namespace headrace::backend_test {

struct AttentionCase {
  std::string name;
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;
  int64_t head_dim = 64;
  int64_t num_tokens = 100;
  KvType type = KvType::f32;
  int64_t block_tokens = 16;
  int64_t window = 0;
  float soft_cap = 0.0F;
  bool causal = true;
};

inline std::vector<AttentionCase> attention_cases() {
  return {
      {"one_head", 1, 1, 32, 1},
      {"groups_of_three", 9, 3, 64, 150},
      {"one_kv_head", 4, 1, 256, 70},
      {"f16", 9, 3, 64, 200, KvType::f16, 32},
      {"head_of_80", 2, 2, 80, 40, KvType::f16},
      {"head_of_96", 6, 2, 96, 140},
      {"head_of_20", 2, 1, 20, 35, KvType::f16},
      {"window", 4, 1, 64, 300, KvType::f32, 16, 48},
      {"window_of_one", 2, 2, 32, 40, KvType::f32, 16, 1},
      {"soft_cap", 4, 2, 128, 60, KvType::f32, 16, 0, 5.0F},
      {"bidirectional", 4, 2, 64, 90, KvType::f32, 16, 0, 0.0F, false},
      {"many_heads_to_one", 40, 1, 32, 50},
      {"two_segments", 3, 1, 64, 1100, KvType::f16, 32},
      {"window_over_segments", 2, 1, 32, 1200, KvType::f16, 16, 600},
      {"q8_one_token", 1, 1, 64, 1, KvType::q8},
      {"q8_groups_of_three", 9, 3, 64, 200, KvType::q8},
      {"q8_one_kv_head", 4, 1, 256, 90, KvType::q8, 32},
      {"q8_head_of_60", 2, 1, 60, 70, KvType::q8},
      {"q8_head_of_80", 4, 2, 80, 130, KvType::q8, 48},
      {"q8_head_of_96", 3, 3, 96, 75, KvType::q8},
      {"q8_head_of_128", 7, 1, 128, 150, KvType::q8},
      {"q8_head_of_300", 2, 1, 300, 40, KvType::q8},
      {"q8_head_of_20", 5, 1, 20, 33, KvType::q8},
      {"q8_window", 4, 1, 64, 300, KvType::q8, 16, 48},
      {"q8_window_of_one", 2, 2, 32, 40, KvType::q8, 16, 1},
      {"q8_soft_cap", 4, 2, 128, 60, KvType::q8, 16, 0, 5.0F},
      {"q8_bidirectional", 4, 2, 64, 90, KvType::q8, 16, 0, 0.0F, false},
      {"q8_many_heads_to_one", 70, 1, 32, 50, KvType::q8},
      {"q12_groups_of_three", 9, 3, 64, 200, KvType::q12},
      {"q12_one_kv_head", 4, 1, 256, 90, KvType::q12, 32},
      {"q12_head_of_60", 2, 1, 60, 70, KvType::q12},
      {"q12_head_of_80", 4, 2, 80, 130, KvType::q12, 48},
      {"q12_head_of_300", 2, 1, 300, 40, KvType::q12},
      {"q12_window", 4, 1, 64, 300, KvType::q12, 16, 48},
      {"q12_soft_cap", 4, 2, 128, 60, KvType::q12, 16, 0, 5.0F},
      {"q12_two_segments", 3, 1, 64, 1100, KvType::q12, 32},
      {"q8_two_segments", 3, 1, 64, 1100, KvType::q8, 32},
      {"q8_window_over_segments", 2, 1, 32, 1200, KvType::q8, 16, 600},
  };
}

inline AttentionParams params_of(const AttentionCase& c) {
  AttentionParams params;
  params.num_heads = c.num_heads;
  params.num_kv_heads = c.num_kv_heads;
  params.head_dim = c.head_dim;
  params.scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  params.soft_cap = c.soft_cap;
  params.window = c.window;
  params.causal = c.causal;
  return params;
}

/// Multiplies each stretch of the largest power of two that divides x's size with Hadamard's
/// matrix, of ones and minus ones, and returns that power.
inline size_t rotate(std::span<double> x) {
  const size_t size = x.size() & -x.size();
  for (size_t begin = 0; begin < x.size(); begin += size) {
    std::vector<double> out(size, 0.0);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        out[i] += std::popcount(i & j) % 2 == 0 ? x[begin + j] : -x[begin + j];
      }
    }
    std::copy(out.begin(), out.end(), x.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return size;
}

/// Whether a page of that type can hold values without an error: as many codes as features.
inline bool has_exact_values(const AttentionCase& c) {
  return is_quantized(c.type) && Q8Panel(c.type, c.head_dim).dim == c.head_dim;
}

/// Values of about [-1, 1] which, rotated, are codes times a power of two, not the same in all
/// rows. One code of each head is the largest, so that this power is the scale.
inline Buffer exact_values(const AttentionCase& c, uint64_t seed) {
  Buffer out(DType::f32, c.num_tokens, c.num_kv_heads * c.head_dim);
  Numbers numbers(seed);
  std::vector<double> x(static_cast<size_t>(c.head_dim));
  for (int64_t at = 0; at < c.num_tokens * c.num_kv_heads; ++at) {
    for (double& code : x) code = static_cast<double>(numbers.below(255) - 127);
    x[static_cast<size_t>(numbers.below(c.head_dim))] = numbers.below(2) == 0 ? 127.0 : -127.0;
    const auto size = static_cast<double>(rotate(x));
    const int exponent =
        static_cast<int>(std::log2(size) / 2) - 7 - static_cast<int>(at / c.num_kv_heads % 3);
    float* row = out.view().f32() + at * c.head_dim;
    for (const double value : x) *row++ = static_cast<float>(std::ldexp(value / size, exponent));
  }
  return out;
}

/// Queries or keys within [-3, 3]. Those that are to be rounded are multiples of 1 / 256: sums of
/// them are exact in float32, so that kernels and tests round the same number.
inline Buffer scored_rows(const AttentionCase& c, int64_t num_heads, uint64_t seed) {
  Buffer out = random_rows(c.num_tokens, num_heads * c.head_dim, seed, 3.0F);
  if (!is_quantized(c.type)) return out;
  for (float& x :
       std::span(out.view().f32(), static_cast<size_t>(out.view().rows * out.view().cols))) {
    x = std::nearbyint(x * 256.0F) / 256.0F;
  }
  return out;
}

/// A sequence's inputs, and blocks in an order that is not their own.
struct Scene {
  explicit Scene(const AttentionCase& c, uint64_t seed = 1)
      : q(scored_rows(c, c.num_heads, seed)),
        k(scored_rows(c, c.num_kv_heads, seed + 100)),
        v(has_exact_values(c) ? exact_values(c, seed + 200)
                              : random_rows(c.num_tokens, c.num_kv_heads * c.head_dim, seed + 200)),
        layout{c.type, c.num_kv_heads, c.head_dim, c.block_tokens} {
    const auto num_blocks = static_cast<int32_t>(ceil_div(c.num_tokens, c.block_tokens));
    for (int32_t i = 0; i < num_blocks; ++i) blocks.push_back(num_blocks - 1 - i);
  }
  Buffer q, k, v;
  KvPageLayout layout;
  std::vector<int32_t> blocks;
};

/// Feeds the scene in chunks; every page is first filled with NaN, as stale memory might be.
inline std::vector<float> run(Backend& backend, const AttentionCase& c, const Scene& scene,
                              int64_t chunk) {
  const auto storage =
      backend.allocate_kv(scene.layout, 2, static_cast<int64_t>(scene.blocks.size()));
  const KvView view = storage->layer(1);
  for (const int32_t block : scene.blocks) {
    std::memset(view.page(block), 0xff, scene.layout.page_bytes());
  }
  const Buffer out = backend.allocate(DType::f32, c.num_tokens, scene.q.view().cols);
  for (int64_t begin = 0; begin < c.num_tokens; begin += chunk) {
    const int64_t n = std::min(chunk, c.num_tokens - begin);
    const KvSequence sequence{0, n, begin, scene.blocks};
    backend.kv_write(scene.k.view().slice_rows(begin, n), scene.v.view().slice_rows(begin, n), view,
                     std::span(&sequence, 1));
    backend.attention(scene.q.view().slice_rows(begin, n), view, params_of(c),
                      std::span(&sequence, 1), out.view().slice_rows(begin, n));
  }
  return to_vector(out.view());
}

/// Every table of every instruction set that this machine has.
inline std::vector<const KernelTable*> all_tables() {
  std::vector<const KernelTable*> tables;
  for (const Isa isa : available_isas()) {
    for (const KernelTable* table : kernel_tables(isa)) tables.push_back(table);
  }
  return tables;
}

inline std::string table_name(const testing::TestParamInfo<const KernelTable*>& info) {
  std::string name = info.param->name + std::to_string(info.index);
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
}

/// A test of one kernel table.
class TestOfKernelTable : public testing::TestWithParam<const KernelTable*> {
 protected:
  static std::unique_ptr<Backend> backend_with(int num_threads) {
    return make_cpu_backend(*GetParam(), num_threads);
  }
};

}  // namespace headrace::backend_test
