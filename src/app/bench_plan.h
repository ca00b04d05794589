// Which tests a benchmark runs and what memory they need. Pure arithmetic. Must not know how they
// are run or shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/memory_plan.h"
#include "headrace/result.h"
#include "model/config.h"

namespace headrace {

/// A prompt of n_prompt tokens, or n_gen tokens decoded by `parallel` sequences at once, each with
/// `depth` tokens behind it.
struct BenchTest {
  int64_t n_prompt = 0;
  int64_t n_gen = 0;
  int64_t parallel = 1;
  int64_t depth = 0;

  /// Tokens that a repetition computes, over all sequences.
  int64_t num_tokens() const { return n_prompt > 0 ? n_prompt : n_gen * parallel; }
};

/// "pp512", "tg128", "tg128 @ d4096", "tg128 x8", "tg128 x8 @ d4096".
std::string bench_test_name(const BenchTest& test);

struct BenchLists {
  std::vector<int64_t> prompts;    ///< 0: none
  std::vector<int64_t> gens;       ///< 0: none
  std::vector<int64_t> parallels;  ///< at least 1
  std::vector<int64_t> depths;
};

/// Every prompt; then every number of generated tokens at every depth with every number of
/// sequences, smaller depths first. No test twice.
std::vector<BenchTest> bench_tests(const BenchLists& lists);

/// KV tokens that each of the sequences needs, so that all tests can run one after another.
std::vector<int64_t> bench_sequence_tokens(const std::vector<BenchTest>& tests);

/// The most memory that a measurement of read speed takes.
inline constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

/// Whether the tests fit the model's context and the memory. `needs`: weights, caches, KV type and
/// steps of the model. Errors: context_length_exceeded, resource_exhausted with the arithmetic.
Result<void> check_bench_fits(const std::vector<BenchTest>& tests, const ModelConfig& config,
                              MemoryNeeds needs, uint64_t available_bytes);

}  // namespace headrace
