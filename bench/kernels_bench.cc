// Speed of the CPU backend's operations: products per kernel table, weight format and number of
// rows, attention while prefilling and decoding, packing. The bounds of one thread are measured
// first and printed.
//
//   HEADRACE_THREADS=1 kernels_bench --benchmark_filter='linear/avx2/Q4_1'
//
// GMAC/s: 1e9 multiply-adds a second. GB/s: packed weights (for attention: keys and values) read.
// Products: of the best iteration; MAC/cycle and of_peak are per thread, of_peak is the share of
// the table's 8-bit dot instruction, of_read of one thread's read bandwidth. The rest: averages,
// with one thread per second of processor time, with more per second of wall time.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "backend/cpu/context.h"
#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/matrix.h"
#include "backend/cpu/test_tensors.h"
#include "bench/num_threads.h"
#include "bench/peaks.h"

namespace headrace {
namespace {

using namespace backend_test;

/// The bounds of one thread, measured before the benchmarks.
struct Bounds {
  double cycles = 0;
  std::vector<Peak> peaks;
  double read_bytes = 0;

  double peak(const std::string& name) const {
    for (const Peak& peak : peaks) {
      if (peak.name == name) return peak.per_second;
    }
    return 0;
  }
  /// Of the instruction that a table's products with packed weights consist of.
  double peak_of(const KernelTable& table) const {
    const std::string name = table.name;
    if (name.find("amx") == 0) return peak("tdpbf16ps");
    if (name.find("avx512") == 0) return peak("dpbusd zmm");
    if (name.find("avx2 (VNNI)") == 0) return peak("dpbusd ymm");
    return peak(name.find("avx2") == 0 ? "maddubs ymm" : "fma ymm");
  }
};

Bounds& bounds() {
  static Bounds measured;
  return measured;
}

void set_rates(benchmark::State& state, double macs, double bytes) {
  using benchmark::Counter;
  state.counters["GMAC/s"] =
      Counter(macs * 1e-9, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["GB/s"] =
      Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

/// One product on one kernel table, as a model runs it. Weights do not stay in a cache between
/// calls: there are as many matrices as that takes. The figures are those of the best iteration.
void linear(benchmark::State& state, const KernelTable& table, Format format, int64_t rows) {
  constexpr size_t kLargeCache = size_t{600} << 20;
  const int64_t cols = 1536;
  const int64_t out_rows = rows >= 128 ? 768 : 1536;  // short calls are disturbed less
  CpuContext context(table, num_threads());
  WeightMemory memory;
  const auto data = made_up_blocks(format, out_rows, cols, 1);
  std::vector<std::unique_ptr<CpuMatrix>> matrices;
  const size_t num_matrices = rows >= 32 ? 1 : 1 + kLargeCache / data.size();
  for (size_t i = 0; i < num_matrices; ++i) {
    auto matrix = CpuMatrix::pack({format, out_rows, cols, data, {}, "w"}, context.pool,
                                  packing_for(table), memory);
    matrices.push_back(std::move(*matrix));
  }
  const Buffer x = uneven_rows(rows, cols, 2);
  const Buffer out(DType::f32, rows, out_rows);
  double best = 1e9;
  size_t next = 0;
  for (auto _ : state) {
    const LinearTask task{matrices[next].get(), {}, out.view()};
    next = (next + 1) % num_matrices;
    const auto start = std::chrono::steady_clock::now();
    cpu_linear(context, x.view(), std::span(&task, 1));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(time.count());
    best = std::min(best, time.count());
  }
  const double macs = static_cast<double>(rows * cols * out_rows) / best;
  const double bytes = static_cast<double>(matrices[0]->bytes()) / best;
  const double threads = num_threads();
  state.counters["GMAC/s"] = macs * 1e-9;
  state.counters["MAC/cycle"] = macs / bounds().cycles / threads;
  state.counters["of_peak"] = macs / bounds().peak_of(table) / threads;
  state.counters["GB/s"] = bytes * 1e-9;
  state.counters["of_read"] = bytes / bounds().read_bytes / threads;
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

void register_linear(const KernelTable& table) {
  std::string name = table.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  for (const FormatTraits& format : all_formats()) {
    for (const int64_t rows : {1, 4, 8, 32, 128, 512}) {
      benchmark::RegisterBenchmark(fmt::format("linear/{}/{}/{}", name, format.name, rows).c_str(),
                                   [&table, format = format.format, rows](benchmark::State& state) {
                                     linear(state, table, format, rows);
                                   })
          ->UseManualTime();
    }
  }
}

void register_all() {
  for (const Isa isa : available_isas()) {
    for (const KernelTable* table : kernel_tables(isa)) register_linear(*table);
    for (const FormatTraits& format : all_formats()) {
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
  auto& bounds = headrace::bounds();
  bounds = {headrace::cycles_per_second(), headrace::arithmetic_peaks(),
            headrace::read_bandwidth()};
  benchmark::AddCustomContext("GHz", fmt::format("{:.2f}", bounds.cycles * 1e-9));
  for (const auto& peak : bounds.peaks) {
    benchmark::AddCustomContext(peak.name, fmt::format("{:.0f} GMAC/s", peak.per_second * 1e-9));
  }
  benchmark::AddCustomContext("read", fmt::format("{:.1f} GB/s", bounds.read_bytes * 1e-9));
  headrace::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
