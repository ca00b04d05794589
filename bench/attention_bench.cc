// Speed of attention, for each instruction set and KV type, beside the machine's limits measured in
// the same run.
//
//   attention_bench [FILTER]        HEADRACE_THREADS=2 attention_bench avx512/q8
//
// Prefill: a whole prompt, 64 rows in a call; MAC/cycle counts the products of visible pairs only.
// Decode: one row at a depth; GB/s counts the pages that hold the keys and values it sees. The
// pages of many layers take turns, so that they come from memory as in a model. Each figure is the
// shortest of many tries.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "backend/cpu/test_tensors.h"
#include "base/function_ref.h"
#include "bench/peaks.h"

namespace headrace {
namespace {

using namespace backend_test;

struct Heads {
  const char* name;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t window;
  int64_t num_layers;  ///< of this kind
};

constexpr Heads kModels[] = {
    {"smollm2", 9, 3, 64, 0, 30},
    {"gemma3", 4, 1, 256, 0, 3},
    {"gemma3-window", 4, 1, 256, 512, 15},
};

int num_threads() {
  const char* set = std::getenv("HEADRACE_THREADS");
  return set != nullptr && set[0] == '2' ? 2 : 1;
}

/// Runs part(0), ..., part(num_parts - 1) over and over; the sum of each part's shortest time, so
/// that what other programs take now and then is not counted. One thread's longer parts are timed
/// by the processor time they take.
double best_seconds(int64_t num_parts, double budget, FunctionRef<void(int64_t)> part) {
  using Clock = std::chrono::steady_clock;
  const auto processor = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  std::vector<double> best(static_cast<size_t>(num_parts), 1e9);
  const double begin = processor();
  for (int i = 0; i < 5 || processor() - begin < budget; ++i) {
    for (int64_t j = 0; j < num_parts; ++j) {
      const double processor_start = processor();
      const auto start = Clock::now();
      part(j);
      double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (num_threads() == 1 && seconds > 1e-4) seconds = processor() - processor_start;
      best[static_cast<size_t>(j)] = std::min(best[static_cast<size_t>(j)], seconds);
    }
  }
  double sum = 0;
  for (const double seconds : best) sum += seconds;
  return sum;
}

/// Keys that `rows` rows see, the last at position depth - 1.
double visible_pairs(const Heads& heads, int64_t depth, int64_t rows) {
  double pairs = 0;
  for (int64_t i = depth - rows; i < depth; ++i) {
    pairs += static_cast<double>(heads.window > 0 ? std::min(heads.window, i + 1) : i + 1);
  }
  return pairs;
}

class Bench {
 public:
  Bench(Isa isa, int num_threads) : backend_(backend_of(isa, num_threads)) {}

  void setup(const Heads& heads, KvType type, int64_t depth) {
    heads_ = heads;
    params_ = {};
    params_.num_heads = heads.num_heads;
    params_.num_kv_heads = heads.num_kv_heads;
    params_.head_dim = heads.head_dim;
    params_.window = heads.window;
    params_.scale = 1.0F / std::sqrt(static_cast<float>(heads.head_dim));
    const KvPageLayout layout{type, heads.num_kv_heads, heads.head_dim, 16};
    token_bytes_ = static_cast<double>(layout.page_bytes()) / 16;
    const int64_t num_blocks = ceil_div(depth, 16);
    storage_ = backend_->allocate_kv(layout, heads.num_layers, num_blocks);
    table_.clear();
    for (int64_t i = 0; i < num_blocks; ++i) table_.push_back(static_cast<int32_t>(i));
    q_ = random_rows(depth, heads.num_heads * heads.head_dim, 1, 2.0F);
    k_ = random_rows(depth, heads.num_kv_heads * heads.head_dim, 2, 2.0F);
    v_ = random_rows(depth, heads.num_kv_heads * heads.head_dim, 3);
    out_ = backend_->allocate(DType::f32, depth, q_.view().cols);
    depth_ = depth;
    for (int64_t layer = 0; layer < heads.num_layers; ++layer) write(layer, depth);
  }

  void write(int64_t layer, int64_t rows) {
    const KvSequence last{0, rows, depth_ - rows, table_};
    backend_->kv_write(k_.view().slice_rows(0, rows), v_.view().slice_rows(0, rows),
                       storage_->layer(layer), std::span(&last, 1));
  }

  /// `rows` rows, the first at `position`.
  void attend(int64_t layer, int64_t position, int64_t rows) {
    const KvSequence part{0, rows, position, table_};
    backend_->attention(q_.view().slice_rows(position, rows), storage_->layer(layer), params_,
                        std::span(&part, 1), out_.view().slice_rows(position, rows));
  }

  /// Seconds of one layer's attention.
  double prefill() {
    constexpr int64_t kRows = 64;
    return best_seconds(depth_ / kRows, 1.0,
                        [&](int64_t i) { attend(i % heads_.num_layers, i * kRows, kRows); });
  }
  double decode() {
    return best_seconds(heads_.num_layers, 0.5,
                        [&](int64_t layer) { attend(layer, depth_ - 1, 1); }) /
           static_cast<double>(heads_.num_layers);
  }
  double write_rows(int64_t rows) {
    return best_seconds(1, 0.1, [&](int64_t) { write(0, rows); });
  }
  double token_bytes() const { return token_bytes_; }

 private:
  std::unique_ptr<Backend> backend_;
  Heads heads_{};
  AttentionParams params_;
  double token_bytes_ = 0;
  std::unique_ptr<KvStorage> storage_;
  std::vector<int32_t> table_;
  Buffer q_, k_, v_, out_;
  int64_t depth_ = 0;
};

void run(std::string_view filter) {
  const double cycles = cycles_per_second();
  fmt::print("{} threads; {:.2f} GHz", num_threads(), cycles * 1e-9);
  for (const Peak& peak : arithmetic_peaks()) {
    fmt::print("; {} {:.1f} MAC/cycle", peak.name, peak.per_second / cycles);
  }
  const double bandwidth = read_bandwidth();
  fmt::print("; one thread reads {:.1f} GB/s\n", bandwidth * 1e-9);
  for (const Isa isa : available_isas()) {
    Bench bench(isa, num_threads());
    for (const Heads& heads : kModels) {
      for (const KvType type : kKvTypes) {
        const auto name = fmt::format("{}/{}/{}", isa_name(isa), kv_type_name(type), heads.name);
        if (name.find(filter) == std::string::npos) continue;
        for (const int64_t depth : {512, 2048}) {
          bench.setup(heads, type, depth);
          const double seconds = bench.prefill();
          const double macs = 2 * visible_pairs(heads, depth, depth) *
                              static_cast<double>(heads.num_heads * heads.head_dim);
          fmt::print(
              "{:28} prefill {:5}  {:9.1f} us  {:6.1f} GMAC/s {:6.1f} MAC/cycle and thread\n", name,
              depth, seconds * 1e6, macs / seconds * 1e-9, macs / seconds / cycles / num_threads());
          fmt::print("{:28} write   {:5}  {:9.1f} us  one row {:6.2f} us\n", name, depth,
                     bench.write_rows(depth) * 1e6, bench.write_rows(1) * 1e6);
        }
        for (const int64_t depth : {128, 4096}) {
          bench.setup(heads, type, depth);
          const double seconds = bench.decode();
          const double bytes = visible_pairs(heads, depth, 1) * bench.token_bytes();
          fmt::print("{:28} decode  {:5}  {:9.1f} us  {:6.1f} GB/s = {:.0f} % of what {} read\n",
                     name, depth, seconds * 1e6, bytes / seconds * 1e-9,
                     100 * bytes / seconds / bandwidth / num_threads(),
                     num_threads() == 1 ? "one thread can" : "two threads can");
        }
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  headrace::run(argc > 1 ? argv[1] : "");
  return 0;
}
