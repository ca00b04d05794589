// Time of choosing tokens, from logits in the backend to ids, by instruction set, vocabulary, rows
// and parameters.
//
//   sampling_bench --benchmark_filter='avx512/262144'    HEADRACE_THREADS=1 sampling_bench
//
// The rows of 64 MB take turns, so that a row is not in a private cache, as after an output head.
// GB/s: as if each row were read once. `read` is that and nothing else: the bound.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "backend/cpu/context.h"
#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/test_tensors.h"
#include "bench/run_benchmarks.h"
#include "sampling/sampler.h"

namespace headrace {
namespace {

using namespace backend_test;

void set_rate(benchmark::State& state, int64_t rows, int64_t vocab) {
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(4 * rows * vocab) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

/// Logits with the tail of a model's: few are likely.
Buffer made_up_logits(int64_t rows, int64_t vocab) {
  Buffer out(DType::f32, rows, vocab);
  Numbers numbers(1);
  for (int64_t i = 0; i < rows * vocab; ++i) {
    const double u = to_unit_interval(numbers.bits());
    const double v = to_unit_interval(numbers.bits());
    out.view().f32()[i] =
        static_cast<float>(2.5 * std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v));
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int i = 0; i < 12; ++i) {
      out.view().f32(r)[numbers.below(vocab)] = 19.0F + 5.0F * numbers.unit();
    }
  }
  return out;
}

int64_t rows_in_turn(int64_t rows, int64_t vocab) {
  return (int64_t{64} << 20) / (4 * vocab * rows) * rows;
}

void choose(benchmark::State& state, Isa isa, int64_t vocab, int64_t rows, const Request& request) {
  const auto backend = backend_of(isa, num_threads());
  const int64_t num_rows = rows_in_turn(rows, vocab);
  const Buffer logits = made_up_logits(num_rows, vocab);
  Chain chain(request, {1}, 7, 0);
  std::vector<TokenId> tokens = request.prompt;
  Numbers numbers(2);
  while (tokens.size() < 1000) {
    tokens.push_back(static_cast<TokenId>(numbers.below(vocab)));
  }
  Sampler sampler(*backend, rows, vocab);
  int64_t at = 0;
  for (auto _ : state) {
    sampler.clear();
    for (int64_t r = 0; r < rows; ++r) sampler.add(chain, {tokens, 10});
    sampler.run(logits.view().slice_rows(at, rows));
    for (int64_t r = 0; r < rows; ++r) {
      const auto token = sampler.choose(static_cast<size_t>(r));
      if (!token.ok()) state.SkipWithError(token.error().message.c_str());
      benchmark::DoNotOptimize(token);
    }
    if ((at += rows) == num_rows) at = 0;
  }
  set_rate(state, rows, vocab);
}

/// By the machine's best instruction set: the bound of all.
void read(benchmark::State& state, int64_t vocab, int64_t rows) {
  CpuContext context(kernel_table(available_isas().back()), num_threads());
  const int64_t num_rows = rows_in_turn(rows, vocab);
  const Buffer logits = made_up_logits(num_rows, vocab);
  const int64_t num_chunks = ceil_div(vocab, kSampleChunk) * rows;
  int64_t at = 0;
  for (auto _ : state) {
    const auto* data = reinterpret_cast<const std::byte*>(logits.view().f32(at));
    context.pool.parallel_for(num_chunks, [&](int64_t chunk, int) {
      benchmark::DoNotOptimize(
          context.kernels.read_memory(data + chunk * 4 * kSampleChunk, 4 * kSampleChunk, 0));
    });
    if ((at += rows) == num_rows) at = 0;
  }
  set_rate(state, rows, vocab);
}

struct Setting {
  std::string_view name;
  Request request;
};

std::vector<Setting> settings() {
  const auto with = [](std::string_view name, auto&& change) {
    Setting out{name, {}};
    out.request.prompt.assign(10, 3);
    change(out.request);
    return out;
  };
  const auto usual = [](Request& r) {
    r.sampling.temperature = 0.8F;
    r.sampling.top_k = 40;
    r.sampling.top_p = 0.95F;
    r.sampling.min_p = 0.05F;
  };
  return {
      with("greedy", [](Request& r) { r.sampling.temperature = 0; }),
      with("usual", usual),
      with("temperature", [](Request& r) { r.sampling.temperature = 0.8F; }),
      with("top_p", [](Request& r) { r.sampling.top_p = 0.9F; }),
      with("min_p", [](Request& r) { r.sampling.min_p = 0.05F; }),
      with("penalties",
           [&](Request& r) {
             usual(r);
             r.sampling.repetition_penalty = 1.1F;
             r.sampling.frequency_penalty = 0.1F;
           }),
      with("logprobs",
           [&](Request& r) {
             usual(r);
             r.num_logprobs = 20;
           }),
      with("penalties+logprobs",
           [&](Request& r) {
             usual(r);
             r.sampling.repetition_penalty = 1.1F;
             r.num_logprobs = 20;
           }),
      with("whole_row",
           [](Request& r) {
             r.sampling.temperature = 1.3F;
             r.sampling.top_p = 0.95F;
           }),
  };
}

/// Rates by processor time, or by wall time where there are several threads.
template <class F>
void add(const std::string& name, F&& run) {
  auto* added = benchmark::RegisterBenchmark(name.c_str(), run);
  added->Unit(benchmark::kMicrosecond);
  if (num_threads() > 1) added->UseRealTime();
}

void register_all() {
  for (const Isa isa : available_isas()) {
    for (const int64_t vocab : {49152, 262144}) {
      for (const int64_t rows : {1, 8, 32}) {
        const auto name = [&](std::string_view what) {
          return fmt::format("{}/{}/{}/rows:{}", isa_name(isa), vocab, what, rows);
        };
        add(name("read"), [=](benchmark::State& state) { read(state, vocab, rows); });
        for (const Setting& setting : settings()) {
          if (rows > 1 && setting.name == "whole_row") continue;
          add(name(setting.name),
              [=](benchmark::State& state) { choose(state, isa, vocab, rows, setting.request); });
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run_benchmarks(argc, argv, headrace::register_all);
}
