// What a step costs besides the model: planning it, committing it, telling its tokens. The model is
// one that answers at once. Time a step, with that many sequences that generate.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "engine/engine_impl.h"

namespace headrace {
namespace {

constexpr int64_t kContext = 4096;

class InstantRunner final : public ModelRunner {
 public:
  InstantRunner() { info_.vocab_size = 1000; }
  const ModelInfo& info() const override { return info_; }
  int64_t max_logit_rows() const override { return 256; }
  void launch(Batch& /*batch*/) override {}
  Result<void> collect(Batch& batch) override {
    for (BatchSample& sample : batch.samples) sample.token.id = 5;
    return {};
  }
  std::string device() const override { return "none"; }
  uint64_t block_bytes(size_t /*group*/) const override { return 0; }
  void read_block(size_t /*group*/, int32_t /*block*/, int64_t /*num_tokens*/,
                  std::span<std::byte> /*out*/) const override {}
  void write_block(size_t /*group*/, int32_t /*block*/,
                   std::span<const std::byte> /*in*/) override {}

 private:
  ModelInfo info_;
};

std::unique_ptr<EngineImpl> make(int64_t max_sequences) {
  EngineOptions options;
  options.context = kContext;
  options.max_sequences = max_sequences;
  options.chunk_tokens = 512;
  options.kv_tokens = max_sequences * kContext;
  const std::vector<CacheGeometry> geometries{{.block_tokens = 16, .window = 0},
                                              {.block_tokens = 16, .window = 512}};
  EngineParts parts;
  parts.runner = std::make_unique<InstantRunner>();
  parts.clock = std::make_shared<SystemClock>();
  parts.random = std::make_shared<SystemRandom>();
  return std::make_unique<EngineImpl>(std::move(parts), options, geometries,
                                      engine_blocks(options, geometries));
}

Stream submit(EngineImpl& engine, TokenId first) {
  Request request;
  request.prompt.resize(300);
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    request.prompt[i] = static_cast<TokenId>((static_cast<size_t>(first) * 7 + i) % 1000);
  }
  request.stop.ignore_eos = true;
  return std::move(engine.submit(std::move(request))).value();
}

void BM_Step(benchmark::State& state) {
  const int64_t num_sequences = state.range(0);
  const int64_t num_waiting = state.range(1);
  auto engine = make(num_sequences);
  std::vector<Stream> streams;
  for (int64_t i = 0; i < num_sequences + num_waiting; ++i) {
    streams.push_back(submit(*engine, static_cast<TokenId>(i)));
  }
  while (engine->stats().generated_tokens < 2 * num_sequences) engine->step(false);
  const EngineStats before = engine->stats();
  for (auto _ : state) {
    engine->step(false);
    state.PauseTiming();
    for (Stream& stream : streams) {
      while (stream.wait_for(std::chrono::milliseconds(0))) {
        if (!stream.next()) {  // at its context's end: another one takes its place
          stream = submit(*engine, static_cast<TokenId>(state.iterations()));
          break;
        }
      }
    }
    state.ResumeTiming();
  }
  const EngineStats after = engine->stats();
  const auto steps = static_cast<double>(after.num_steps - before.num_steps);
  state.counters["planning and committing, us"] =
      1e-3 * static_cast<double>(after.scheduling_ns - before.scheduling_ns) / steps;
}

BENCHMARK(BM_Step)
    ->Args({1, 0})
    ->Args({16, 0})
    ->Args({64, 0})
    ->Args({64, 1000})
    ->Args({256, 0})
    ->Unit(benchmark::kMicrosecond)
    ->MinTime(0.2);

}  // namespace
}  // namespace headrace
