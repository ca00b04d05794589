// Tokenising speed, one thread. Text from files of bench/make_text.py.
//
//   tokenize_bench --benchmark_min_time=2 MODEL TEXT...
//
// MODEL is a GGUF file or a Hugging Face directory.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "checkpoint/checkpoint.h"
#include "text/tokenizer.h"

namespace {

using namespace headrace;

void tokenize(benchmark::State& state, const Tokenizer& tokenizer, const std::string& text) {
  size_t num_tokens = 0;
  for (auto _ : state) {
    const auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = false});
    if (!ids.ok()) return state.SkipWithError(ids.error().to_string().c_str());
    num_tokens = ids->size();
    benchmark::DoNotOptimize(ids->data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["tokens"] = static_cast<double>(num_tokens);
}

Result<std::shared_ptr<const Tokenizer>> open_model_tokenizer(const std::string& path) {
  if (std::filesystem::is_directory(path)) return open_hf_tokenizer(path, {});
  HEADRACE_ASSIGN(const auto checkpoint, open_checkpoint(path));
  return make_tokenizer(checkpoint->metadata(), {});
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 3) {
    std::cerr << "usage: tokenize_bench [--benchmark_...] MODEL TEXT...\n";
    return 2;
  }
  const auto tokenizer = open_model_tokenizer(argv[1]);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.error().to_string() << "\n";
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      std::cerr << "cannot read " << argv[i] << "\n";
      return 1;
    }
    const std::string name = std::filesystem::path(argv[i]).filename().string();
    benchmark::RegisterBenchmark(name.c_str(), [tokenizer = *tokenizer,
                                                text = text.str()](benchmark::State& state) {
      tokenize(state, *tokenizer, text);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
}
