// See bench_sample.h.
#include "app/bench_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/check.h"

namespace headrace {
namespace {

/// Beyond these a figure moves by more than a careful comparison allows.
constexpr double kMaxSpread = 0.05;              // standard deviation / median
constexpr double kMaxOthers = 0.1;               // processors
constexpr double kMaxStolen = 0.03;              // of the processors used
constexpr double kMaxPreemptionsPerSecond = 30;  // of each thread
/// The system counts in hundredths of a second: a shorter stretch says nothing of other programs.
constexpr double kMinSeconds = 0.2;

std::string text(const char* format, double a, double b) {
  std::array<char, 160> out{};
  std::snprintf(out.data(), out.size(), format, a, b);
  return out.data();
}

}  // namespace

SampleSummary summarize(std::vector<double> samples) {
  HEADRACE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  SampleSummary out;
  out.min = samples.front();
  out.max = samples.back();
  out.median = n % 2 == 1 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
  double sum = 0;
  for (const double sample : samples) sum += sample;
  out.avg = sum / static_cast<double>(n);
  double squares = 0;
  for (const double sample : samples) squares += (sample - out.avg) * (sample - out.avg);
  if (n > 1) out.stddev = std::sqrt(squares / static_cast<double>(n - 1));
  return out;
}

std::vector<std::string> unsteady_reasons(const SampleSummary& summary,
                                          const MeasuredStretch& stretch) {
  std::vector<std::string> reasons;
  if (summary.stddev > kMaxSpread * summary.median) {
    reasons.push_back(text("the repetitions differ by %.0f %% (standard deviation)",
                           100 * summary.stddev / summary.median, 0));
  }
  if (stretch.num_threads > stretch.num_processors) {
    reasons.push_back(text("%.0f threads take turns on %.0f processors", stretch.num_threads,
                           stretch.num_processors));
    return reasons;  // the rest would be our own doing
  }
  if (stretch.seconds < kMinSeconds) return reasons;
  const MachineLoad& before = stretch.before;
  const MachineLoad& after = stretch.after;
  if (const auto all = static_cast<double>(after.machine.num_processors); all > 0) {
    const double busy = after.machine.busy - before.machine.busy;
    const double own = after.own_seconds - before.own_seconds;
    const double others = (busy - own) / stretch.seconds;
    const double spare = std::max(all - stretch.num_threads, 0.0);
    if (others > spare + kMaxOthers) {
      reasons.push_back(text("other programs kept %.1f of %.0f processors busy", others, all));
    }
    const double stolen = (after.machine.stolen - before.machine.stolen) / stretch.seconds;
    if (stolen > kMaxStolen * std::min(all, static_cast<double>(stretch.num_threads))) {
      reasons.push_back(text("the hypervisor gave %.2f of %.0f processors to others", stolen, all));
    }
  }
  const double preemptions = static_cast<double>(after.preemptions - before.preemptions) /
                             stretch.seconds / stretch.num_threads;
  if (preemptions > kMaxPreemptionsPerSecond) {
    reasons.push_back(text("each thread had to give way %.0f times a second", preemptions, 0));
  }
  return reasons;
}

}  // namespace headrace
