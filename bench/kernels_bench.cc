// Speed of the CPU backend's operations: products per weight format, instruction set and number of
// rows (multiply-adds and packed bytes a second), attention while prefilling and decoding.
//
//   kernels_bench --benchmark_filter='linear/avx2/Q4_1'    HEADRACE_THREADS=1 kernels_bench
//
// With one thread the rates are per second of processor time, so that a busy machine matters less;
// with more, per second of wall time.
// GMAC/s: 1e9 multiply-adds a second. GB/s: packed weights (for attention: keys and values) read.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "backend/cpu/test_tensors.h"
#include "base/os/system_limits.h"

namespace headrace {
namespace {

using namespace backend_test;

int num_threads() {
  int n = usable_processors();
  if (const char* set = std::getenv("HEADRACE_THREADS")) {
    const std::string_view text(set);
    std::from_chars(text.data(), text.data() + text.size(), n);
  }
  return n;
}

void set_rates(benchmark::State& state, double macs, double bytes) {
  using benchmark::Counter;
  state.counters["GMAC/s"] =
      Counter(macs * 1e-9, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["GB/s"] =
      Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

/// Enough weights that they do not stay in a private cache between calls.
void linear(benchmark::State& state, Isa isa, Format format, int64_t rows) {
  const int64_t cols = 1536;
  const int64_t out_rows = rows >= 32 ? 1536 : 8192;
  const auto backend = backend_of(isa, num_threads());
  const auto data = made_up_blocks(format, out_rows, cols, 1);
  const auto matrix = backend->pack({format, out_rows, cols, data, {}, "w"});
  const Buffer x = random_rows(rows, cols, 2);
  const Buffer out = backend->allocate(DType::f32, rows, out_rows);
  for (auto _ : state) backend->linear(x.view(), {matrix->get(), {}, out.view()});
  set_rates(state, static_cast<double>(rows * cols * out_rows),
            static_cast<double>((*matrix)->bytes()));
}

/// `rows` tokens at the end of `depth` tokens, with SmolLM2's heads.
void attention(benchmark::State& state, Isa isa, KvType type, int64_t depth, int64_t rows) {
  const auto backend = backend_of(isa, num_threads());
  AttentionParams params;
  params.num_heads = 9;
  params.num_kv_heads = 3;
  params.head_dim = 64;
  params.scale = 0.125F;
  const KvPageLayout layout{type, params.num_kv_heads, params.head_dim, 16};
  const int64_t num_blocks = ceil_div(depth, 16);
  const auto storage = backend->allocate_kv(layout, 1, num_blocks);
  std::vector<int32_t> table;
  for (int64_t i = 0; i < num_blocks; ++i) table.push_back(static_cast<int32_t>(i));
  const KvSequence all{0, depth, 0, table};
  const KvSequence last{0, rows, depth - rows, table};
  const Buffer kv = random_rows(depth, params.num_kv_heads * params.head_dim, 3);
  const Buffer q = random_rows(rows, params.num_heads * params.head_dim, 4);
  const Buffer out = backend->allocate(DType::f32, rows, q.view().cols);
  backend->kv_write(kv.view(), kv.view(), storage->layer(0), std::span(&all, 1));
  for (auto _ : state) {
    backend->attention(q.view(), storage->layer(0), params, std::span(&last, 1), out.view());
  }
  const auto pairs = static_cast<double>(rows * depth - rows * (rows - 1) / 2);
  set_rates(state, 2 * pairs * static_cast<double>(params.num_heads * params.head_dim),
            static_cast<double>(storage->bytes()));
}

/// Packing, as loading a model does it. GB/s: of the file.
void pack(benchmark::State& state, Isa isa, Format format) {
  const int64_t cols = 1536;
  const int64_t rows = 4096;
  const auto backend = backend_of(isa, num_threads());
  const auto data = made_up_blocks(format, rows, cols, 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(backend->pack({format, rows, cols, data, {}, "w"}));
  }
  set_rates(state, 0, static_cast<double>(data.size()));
}

/// Rates by processor time, or by wall time where there are several threads.
void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  auto* added = benchmark::RegisterBenchmark(name.c_str(), run);
  if (num_threads() > 1) added->UseRealTime();
}

void register_all() {
  for (const Isa isa : available_isas()) {
    for (const FormatTraits& format : all_formats()) {
      for (const int64_t rows : {1, 8, 32, 512}) {
        add(fmt::format("linear/{}/{}/{}", isa_name(isa), format.name, rows),
            [=](benchmark::State& state) { linear(state, isa, format.format, rows); });
      }
      add(fmt::format("pack/{}/{}", isa_name(isa), format.name),
          [=](benchmark::State& state) { pack(state, isa, format.format); });
    }
    for (const KvType type : {KvType::f32, KvType::f16}) {
      for (const auto& [depth, rows] :
           {std::pair<int64_t, int64_t>{512, 512}, {4096, 512}, {512, 1}, {4096, 1}, {32768, 1}}) {
        add(fmt::format("attention/{}/{}/depth:{}/rows:{}", isa_name(isa), kv_type_name(type),
                        depth, rows),
            [=, depth = depth, rows = rows](benchmark::State& state) {
              attention(state, isa, type, depth, rows);
            });
      }
    }
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto& cpu = headrace::cpu_features();
  benchmark::AddCustomContext("cpu", cpu.model_name);
  benchmark::AddCustomContext("threads", std::to_string(headrace::num_threads()));
  headrace::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
