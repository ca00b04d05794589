// See positions.h.
#include "model/blocks/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace headrace {
namespace {

// Llama 3.1: wavelengths longer than the original context / low_freq_factor are stretched by
// `factor`, those shorter than it / high_freq_factor are kept, those between are blended.
double scale_llama3(const RopeConfig& config, double frequency) {
  const auto context = static_cast<double>(config.original_context);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < context / config.high_freq_factor) return frequency;
  if (wavelength > context / config.low_freq_factor) return frequency / config.factor;
  const double smooth = (context / wavelength - config.low_freq_factor) /
                        (config.high_freq_factor - config.low_freq_factor);
  return (1 - smooth) * frequency / config.factor + smooth * frequency;
}

// The pair (as a real number) that turns `turns` times over the original context.
double yarn_pair(const RopeConfig& config, double turns) {
  return static_cast<double>(config.dims) *
         std::log(static_cast<double>(config.original_context) / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(config.base));
}

// YaRN: fast pairs are kept, slow ones interpolated, with a linear ramp between.
double scale_yarn(const RopeConfig& config, double frequency, double pair) {
  const double fast = yarn_pair(config, config.beta_fast);
  const double slow = yarn_pair(config, config.beta_slow);
  const double low = std::max(config.truncates ? std::floor(fast) : fast, 0.0);
  const double high =
      std::min(config.truncates ? std::ceil(slow) : slow, static_cast<double>(config.dims) - 1);
  const double width = high == low ? 0.001 : high - low;
  const double ramp = std::clamp((pair - low) / width, 0.0, 1.0);
  return frequency / config.factor * ramp + frequency * (1 - ramp);
}

}  // namespace

double yarn_attention_factor(double factor) {
  return factor <= 1 ? 1.0 : 0.1 * std::log(factor) + 1.0;
}

std::vector<float> rope_frequencies(const RopeConfig& config, std::span<const float> divisors) {
  HEADRACE_CHECK(config.dims > 0 && config.dims % 2 == 0);
  const auto num_pairs = static_cast<size_t>(config.dims / 2);
  HEADRACE_CHECK(divisors.empty() || divisors.size() == num_pairs);
  std::vector<float> out(num_pairs);
  for (size_t i = 0; i < num_pairs; ++i) {
    const auto pair = static_cast<double>(i);
    double frequency = std::pow(config.base, -2 * pair / static_cast<double>(config.dims));
    switch (config.scaling) {
      case RopeConfig::Scaling::none:
      case RopeConfig::Scaling::dynamic:
      case RopeConfig::Scaling::longrope:
        break;
      case RopeConfig::Scaling::linear:
        frequency /= config.factor;
        break;
      case RopeConfig::Scaling::llama3:
        frequency = scale_llama3(config, frequency);
        break;
      case RopeConfig::Scaling::yarn:
        frequency = scale_yarn(config, frequency, pair);
        break;
    }
    if (!divisors.empty()) frequency /= static_cast<double>(divisors[i]);
    out[i] = static_cast<float>(frequency);
  }
  return out;
}

double dynamic_base(const RopeConfig& config, int64_t position) {
  const auto dims = static_cast<double>(config.dims);
  const auto original = static_cast<double>(config.original_context);
  const double tokens = std::max(static_cast<double>(position) + 1, original);
  const double stretch = config.factor * tokens / original - (config.factor - 1);
  // Two features turn by position alone, whatever the base.
  return dims > 2 ? config.base * std::pow(stretch, dims / (dims - 2)) : config.base;
}

Rope::Rope(Backend& backend, const RopeConfig& config, std::span<const float> divisors)
    : backend_(&backend), config_(config), inv_freq_(rope_frequencies(config, divisors)) {}

Rope::Rope(Backend& backend, const RopeConfig& config, const LongRopeDivisors& divisors)
    : backend_(&backend),
      config_(config),
      inv_freq_(rope_frequencies(config, divisors.short_context)),
      long_inv_freq_(rope_frequencies(config, divisors.long_context)) {}

void Rope::reserve(int64_t max_rows) {
  angles_ = backend_->allocate(DType::f32, max_rows, 2 * num_pairs());
}

void Rope::set_context(int64_t max_tokens) {
  is_long_ = is_long_for(max_tokens);
}

Tensor Rope::angles(std::span<const int32_t> positions) {
  const Tensor out = angles_.view(static_cast<int64_t>(positions.size()));
  const auto factor = static_cast<float>(config_.attention_factor);
  const std::vector<float>& usual = is_long_ ? long_inv_freq_ : inv_freq_;
  const auto is_stretched = [&](size_t row) {
    return config_.scaling == RopeConfig::Scaling::dynamic &&
           positions[row] >= config_.original_context;
  };
  for (size_t row = 0, end = 0; row < positions.size(); row = end) {
    const bool has_own = is_stretched(row);
    for (end = row + 1; !has_own && end < positions.size() && !is_stretched(end);) ++end;
    const auto of_rows = positions.subspan(row, end - row);
    const auto own = has_own ? stretched_frequencies(of_rows.front()) : std::vector<float>();
    backend_->rope_angles(
        {has_own ? own : usual, factor}, of_rows,
        out.slice_rows(static_cast<int64_t>(row), static_cast<int64_t>(end - row)));
  }
  return out;
}

std::vector<float> Rope::stretched_frequencies(int32_t position) const {
  RopeConfig stretched = config_;
  stretched.base = dynamic_base(config_, position);
  return rope_frequencies(stretched, {});
}

}  // namespace headrace
