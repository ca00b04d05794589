// Mixtures of experts on the CPU backend: layers of 16 experts of 1024 x 1024, 2 of them for each
// token, beside dense blocks that multiply as much (two experts' hidden features) and that hold as
// much (sixteen's).
//
//   HEADRACE_ISA=avx2 HEADRACE_THREADS=2 moe_bench --benchmark_filter=Q4_K
//
// MB/token: packed weights that one token reads, by arithmetic; GB/s: those over the time.
// MAC/cycle is per thread. Rows choose their experts at random.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/test_tensors.h"
#include "bench/peaks.h"
#include "bench/run_benchmarks.h"

namespace headrace {
namespace {

using namespace backend_test;

constexpr int64_t kWidth = 1024;
constexpr int64_t kExpertLength = 1024;
constexpr int64_t kNumExperts = 16;
constexpr int64_t kNumActive = 2;
/// More weights than caches hold.
constexpr int64_t kNumLayers = 6;

double cycles() {
  static const double per_second = cycles_per_second();
  return per_second;
}

/// HEADRACE_ISA, else what the engine would take.
Isa chosen_isa() {
  const char* set = std::getenv("HEADRACE_ISA");
  return choose_isa(set != nullptr ? set : "").value();
}

/// The blocks of all layers, and memory for their rows.
class Layers {
 public:
  /// `count` blocks a layer, each of `length` hidden features.
  Layers(Format format, int64_t count, int64_t length)
      : backend_(backend_of(chosen_isa(), num_threads())), length_(length) {
    const auto wide = made_up_blocks(format, length, kWidth, 1);
    const auto tall = made_up_blocks(format, kWidth, length, 2);
    for (int64_t i = 0; i < kNumLayers; ++i) {
      auto& layer = layers_.emplace_back();
      for (int64_t e = 0; e < count; ++e) {
        layer.push_back({pack(format, length, kWidth, wide),
                         pack(format, length, kWidth, wide),
                         pack(format, kWidth, length, tall),
                         {},
                         {},
                         {}});
      }
    }
  }

  uint64_t block_bytes() const {
    const Expert& one = layers_[0][0];
    return one.gate->bytes() + one.up->bytes() + one.down->bytes();
  }

  void reserve(int64_t rows, int64_t num_active) {
    x_ = random_rows(rows, kWidth, 3);
    gate_ = Buffer(DType::f32, rows * num_active, length_);
    up_ = Buffer(DType::f32, rows * num_active, length_);
    parts_ = Buffer(DType::f32, rows * num_active, kWidth);
    out_ = Buffer(DType::f32, rows, kWidth);
    scores_ = Buffer(DType::f32, rows, kNumExperts);
  }

  void run_experts() {
    for (const auto& layer : layers_) {
      const Tensor scores = scores_.view();
      for (int64_t i = 0; i < scores.rows * scores.cols; ++i) scores.f32()[i] = numbers_.unit();
      MoeTask task;
      task.input = x_.view();
      task.scores = scores;
      task.experts = layer;
      task.routing = {.num_active = kNumActive, .normalises = true};
      task.gate = gate_.view();
      task.up = up_.view();
      task.parts = parts_.view();
      task.out = out_.view();
      backend_->moe(task);
    }
  }

  void run_dense() {
    for (const auto& layer : layers_) {
      const std::array tasks = {LinearTask{layer[0].gate, {}, gate_.view()},
                                LinearTask{layer[0].up, {}, up_.view()}};
      backend_->linear(x_.view(), tasks);
      LinearInput hidden = gate_.view();
      hidden.up = up_.view();
      backend_->linear(hidden, {layer[0].down, {}, out_.view()});
    }
  }

 private:
  const Matrix* pack(Format format, int64_t rows, int64_t cols,
                     const std::vector<std::byte>& data) {
    matrices_.push_back(backend_->pack({format, rows, cols, data, {}, "w"}).value());
    return matrices_.back().get();
  }

  std::unique_ptr<Backend> backend_;
  int64_t length_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
  std::vector<std::vector<Expert>> layers_;
  Buffer x_, gate_, up_, parts_, out_, scores_;
  Numbers numbers_{5};
};

/// Rates of a run of all layers, in which a row is multiplied with blocks of `hidden` features all
/// together.
void set_rates(benchmark::State& state, int64_t rows, int64_t hidden, double bytes_a_token) {
  const auto runs = static_cast<double>(state.iterations());
  const double macs = runs * static_cast<double>(rows * kNumLayers * 3 * kWidth * hidden);
  state.counters["MAC/cycle"] = benchmark::Counter(
      macs / cycles() / static_cast<double>(num_threads()), benchmark::Counter::kIsRate);
  if (rows > 1) return;
  state.counters["MB/token"] = bytes_a_token * 1e-6;
  state.counters["GB/s"] =
      benchmark::Counter(runs * bytes_a_token * 1e-9, benchmark::Counter::kIsRate);
}

void experts(benchmark::State& state, Format format) {
  Layers layers(format, kNumExperts, kExpertLength);
  layers.reserve(state.range(0), kNumActive);
  for (auto _ : state) layers.run_experts();
  set_rates(
      state, state.range(0), kNumActive * kExpertLength,
      static_cast<double>(kNumLayers * kNumActive) * static_cast<double>(layers.block_bytes()));
}

void dense(benchmark::State& state, Format format, int64_t length) {
  Layers layers(format, 1, length);
  layers.reserve(state.range(0), 1);
  for (auto _ : state) layers.run_dense();
  set_rates(state, state.range(0), length,
            static_cast<double>(kNumLayers) * static_cast<double>(layers.block_bytes()));
}

void register_all() {
  for (const Format format : {Format::q8_0, Format::q4_k}) {
    const std::string name(format_traits(format).name);
    const auto add = [&](const std::string& what, auto run) {
      for (const int64_t rows : {1, 8, 512}) {
        benchmark::RegisterBenchmark((what + "/" + name).c_str(), run)->Arg(rows)->UseRealTime();
      }
    };
    add("experts", [=](benchmark::State& state) { experts(state, format); });
    add("dense_of_active",
        [=](benchmark::State& state) { dense(state, format, kNumActive * kExpertLength); });
    add("dense_of_all",
        [=](benchmark::State& state) { dense(state, format, kNumExperts * kExpertLength); });
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run_benchmarks(argc, argv, headrace::register_all);
}
