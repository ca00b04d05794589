// See rates.h.
#include "app/load/rates.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace headrace {
namespace {

/// Decoded in each test: enough to time, few beside what lies before them.
constexpr int64_t kDecodeSteps = 32;

template <class RateOf>
LoadRates collected(const std::vector<BenchRow>& rows, const RateOf& rate_of) {
  LoadRates out;
  for (const BenchRow& row : rows) {
    if (row.test.n_prompt > 0) {
      out.prefill = rate_of(row);
    } else {
      out.decode.push_back({row.test.parallel, rate_of(row)});
    }
  }
  std::sort(out.decode.begin(), out.decode.end(),
            [](const auto& a, const auto& b) { return a.batch < b.batch; });
  return out;
}

}  // namespace

std::vector<BenchTest> rate_tests(const LoadSpec& spec, int64_t chunk_tokens, int64_t max_batch,
                                  int64_t context_length) {
  const double prompt = spec.mean_prompt();
  const double middle = prompt + 0.5 * spec.output.mean();
  const int64_t n_gen = std::clamp<int64_t>(context_length / 2, 1, kDecodeSteps);
  const int64_t depth = std::clamp<int64_t>(std::llround(middle) - n_gen / 2, 0,
                                            std::max<int64_t>(context_length - n_gen, 0));
  BenchLists lists;
  lists.prompts = {std::min(std::max<int64_t>(chunk_tokens, std::llround(prompt)), context_length)};
  lists.gens = {n_gen};
  for (int64_t batch = 1; batch < max_batch; batch *= 2) lists.parallels.push_back(batch);
  lists.parallels.push_back(max_batch);
  lists.depths = {depth};
  return bench_tests(lists);
}

double LoadRates::decode_rate(double batch) const {
  HEADRACE_CHECK(!decode.empty());
  if (batch <= static_cast<double>(decode.front().batch)) return decode.front().rate;
  for (size_t i = 1; i < decode.size(); ++i) {
    const auto low = static_cast<double>(decode[i - 1].batch);
    const auto high = static_cast<double>(decode[i].batch);
    if (batch > high) continue;
    if (batch == high) return decode[i].rate;
    const double low_seconds = low / decode[i - 1].rate;
    const double high_seconds = high / decode[i].rate;
    return batch / (low_seconds + (high_seconds - low_seconds) * (batch - low) / (high - low));
  }
  return decode.back().rate;
}

LoadRates rates_of(const std::vector<BenchRow>& rows) {
  return collected(rows, [](const BenchRow& row) { return row.rate.median; });
}

LoadRates bounds_of(const std::vector<BenchRow>& rows) {
  return collected(rows, [](const BenchRow& row) { return row.bound; });
}

LoadWork work_of(const std::vector<LoadRecord>& requests) {
  LoadWork work;
  for (const LoadRecord& request : requests) {
    if (!request.is_ok()) continue;
    work.computed_tokens += request.prompt_tokens - request.stats.cached_tokens;
    work.decoded_tokens += static_cast<int64_t>(request.token_ns.size()) - 1;
  }
  return work;
}

double ideal_seconds(const LoadWork& work, const LoadRates& rates, int64_t batch) {
  return static_cast<double>(work.computed_tokens) / rates.prefill +
         static_cast<double>(work.decoded_tokens) / rates.decode_rate(static_cast<double>(batch));
}

double ideal_seconds_of_steps(const LoadWork& work, const LoadRates& rates,
                              const std::vector<LoadSample>& samples) {
  double seconds = static_cast<double>(work.computed_tokens) / rates.prefill;
  for (const LoadSample& sample : samples) {
    const auto tokens = static_cast<double>(sample.num_tokens - sample.num_first);
    if (tokens <= 0) continue;
    const auto steps = static_cast<double>(std::max<int64_t>(sample.num_steps, 1));
    seconds += tokens / rates.decode_rate(tokens / steps);
  }
  return seconds;
}

}  // namespace headrace
