// See bound_metrics.h.
#include "server/bound_metrics.h"

#include <utility>

#include "server/metric_family.h"

namespace headrace::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

/// A number of a model beside its bounds, by name.
struct BoundMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const BoundSample&);
};

constexpr BoundMetric kBoundMetrics[] = {
    {"headrace:fraction_of_bandwidth",
     "Share of the memory bandwidth, as measured at the start, that steps of decoding used while "
     "they ran: of those that ended in the last ten seconds, whoever asks; 0 where there were "
     "none.",
     MetricType::Gauge,
     [](const BoundSample& s) { return s.bounds->fraction_of_bandwidth(s.stats.recent_decode); }},
    {"headrace:memory_bandwidth_bytes_per_second",
     "What the machine can read of its memory, as measured at the start over as much as a step of "
     "decoding reads, 128 MiB at most.",
     MetricType::Gauge,
     [](const BoundSample& s) { return s.bounds->limits().read_bytes_per_second; }},
    {"headrace:decode_read_bytes_total",
     "Weights, keys and values that steps of decoding read. Its rate over that of "
     "headrace:decode_seconds_total is the bandwidth they used.",
     MetricType::Counter, [](const BoundSample& s) { return s.bounds->bytes_of(s.stats.decode); }},
};

std::vector<prometheus::ClientMetric::Label> labels_of_sample(const BoundSample& sample) {
  return {{"model_name", sample.model}, {"engine", "0"}};
}

MetricFamily bounds_family(std::span<const BoundSample> models) {
  FamilyOf family("headrace:bound_tokens_per_second",
                  "Tokens that the machine allows one sequence at its begin: of decoding by the "
                  "memory's bandwidth, of prompts by arithmetic, as measured at the start.",
                  MetricType::Gauge);
  for (const BoundSample& each : models) {
    if (each.bounds == nullptr) continue;
    const auto add = [&](const char* phase, double value) {
      auto labels = labels_of_sample(each);
      labels.push_back({"phase", phase});
      family.add(std::move(labels), value);
    };
    add("prefill", each.bounds->prefill_tokens_per_second());
    add("decode", each.bounds->decode_tokens_per_second());
  }
  return family.take();
}

}  // namespace

void add_bound_metrics(std::span<const BoundSample> models, std::vector<MetricFamily>& to) {
  for (const BoundMetric& metric : kBoundMetrics) {
    FamilyOf family(metric.name, metric.help, metric.type);
    for (const BoundSample& each : models) {
      if (each.bounds != nullptr) family.add(labels_of_sample(each), metric.value(each));
    }
    if (!family.is_empty()) to.push_back(family.take());
  }
  MetricFamily bounds = bounds_family(models);
  if (!bounds.metric.empty()) to.push_back(std::move(bounds));
}

void add_temperature(const TemperatureSensors& sensors, std::vector<MetricFamily>& to) {
  const auto celsius = sensors.highest_celsius();
  if (!celsius) return;
  FamilyOf family("headrace:temperature_celsius",
                  "The hottest sensor of the processors; not there where the machine shows none.",
                  MetricType::Gauge);
  to.push_back(family.add({}, *celsius).take());
}

}  // namespace headrace::server
