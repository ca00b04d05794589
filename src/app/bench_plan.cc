// See bench_plan.h.
#include "app/bench_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/saturating.h"

namespace headrace {
namespace {

std::string memory_text(uint64_t bytes) {
  std::array<char, 32> text{};
  const double value = static_cast<double>(bytes) / (1 << 20);
  std::snprintf(text.data(), text.size(), value < 10 ? "%.1f MiB" : "%.0f MiB", value);
  return text.data();
}

bool same_test(const BenchTest& a, const BenchTest& b) {
  return bench_test_name(a) == bench_test_name(b);
}

void add(std::vector<BenchTest>& tests, const BenchTest& test) {
  const bool is_known = std::any_of(tests.begin(), tests.end(),
                                    [&](const BenchTest& other) { return same_test(test, other); });
  if (!is_known) tests.push_back(test);
}

std::vector<int64_t> sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

std::string bench_test_name(const BenchTest& test) {
  if (test.n_prompt > 0) return "pp" + std::to_string(test.n_prompt);
  std::string name = "tg" + std::to_string(test.n_gen);
  if (test.parallel > 1) name += " x" + std::to_string(test.parallel);
  if (test.depth > 0) name += " @ d" + std::to_string(test.depth);
  return name;
}

std::vector<BenchTest> bench_tests(const BenchLists& lists) {
  std::vector<BenchTest> tests;
  for (const int64_t n_prompt : lists.prompts) {
    if (n_prompt > 0) add(tests, {.n_prompt = n_prompt});
  }
  // A larger depth goes on from what a smaller one has filled.
  for (const int64_t depth : sorted(lists.depths)) {
    for (const int64_t n_gen : lists.gens) {
      for (const int64_t parallel : lists.parallels) {
        if (n_gen > 0) add(tests, {.n_gen = n_gen, .parallel = parallel, .depth = depth});
      }
    }
  }
  return tests;
}

std::vector<int64_t> bench_sequence_tokens(const std::vector<BenchTest>& tests) {
  std::vector<int64_t> tokens;
  for (const BenchTest& test : tests) {
    const auto count = static_cast<size_t>(test.n_prompt > 0 ? 1 : test.parallel);
    const int64_t length = test.n_prompt > 0 ? test.n_prompt : test.depth + test.n_gen;
    if (tokens.size() < count) tokens.resize(count, 0);
    for (size_t i = 0; i < count; ++i) tokens[i] = std::max(tokens[i], length);
  }
  return tokens;
}

Result<void> check_bench_fits(const std::vector<BenchTest>& tests, const ModelConfig& config,
                              MemoryNeeds needs, uint64_t available_bytes) {
  for (const BenchTest& test : tests) {
    const int64_t length = test.n_prompt > 0 ? test.n_prompt : test.depth + test.n_gen;
    if (length <= config.context_length) continue;
    return Error{ErrorCode::context_length_exceeded,
                 bench_test_name(test) + " needs a context of " + std::to_string(length) +
                     " tokens, the model was made for " + std::to_string(config.context_length),
                 "", "use smaller -p, -n or -d"};
  }
  const std::vector<int64_t> tokens = bench_sequence_tokens(tests);
  const auto num_sequences = static_cast<int64_t>(tokens.size());
  needs.chunk_tokens = std::max(needs.chunk_tokens, num_sequences);
  needs.logit_rows = std::max<int64_t>(num_sequences, 1);
  // A sequence keeps the pages behind a window too, so that it can be wound back.
  uint64_t kv_tokens = 0;
  for (const int64_t count : tokens) {
    const int64_t blocks = (count + needs.block_tokens - 1) / needs.block_tokens;
    kv_tokens = saturating_add(
        kv_tokens, static_cast<uint64_t>(blocks) * static_cast<uint64_t>(needs.block_tokens));
  }
  const uint64_t token_bytes = kv_bytes_per_token(needs);
  const uint64_t kv = saturating_mul(kv_tokens, token_bytes);
  const uint64_t activations = activation_bytes(needs);
  const uint64_t all_weights = saturating_add(needs.weight_bytes, needs.file_bytes);
  const uint64_t read = std::min(saturating_add(all_weights, kv), kMaxReadBytes);
  // Weights count as what they take of memory.
  needs.weight_bytes = resident_bytes(needs);
  const uint64_t total =
      saturating_add(saturating_add(needs.weight_bytes, kv), saturating_add(activations, read));
  const uint64_t budget = budget_bytes(available_bytes);
  if (total <= budget) return {};
  return Error{ErrorCode::resource_exhausted,
               "the tests need weights " + memory_text(needs.weight_bytes) + " + KV cache " +
                   memory_text(kv) + " (" + std::to_string(kv_tokens) + " tokens over " +
                   std::to_string(num_sequences) + " sequences, " + std::to_string(token_bytes) +
                   " bytes each) + activations " + memory_text(activations) +
                   " + memory to measure reading with " + memory_text(read) + " = " +
                   memory_text(total) + ", and may use " + memory_text(budget),
               "", "use smaller -p, -n, -d or -npl"};
}

}  // namespace headrace
