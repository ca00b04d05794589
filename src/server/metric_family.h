// One family of Prometheus, to which values are added one after the other.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace headrace::server {

class FamilyOf {
 public:
  FamilyOf(const char* name, const char* help, prometheus::MetricType type) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }

  FamilyOf& add(std::vector<prometheus::ClientMetric::Label> labels, double value) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (family_.type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family_.metric.push_back(std::move(metric));
    return *this;
  }

  /// `shape`: a headrace::Histogram.
  template <class Shape>
  void add_histogram(std::vector<prometheus::ClientMetric::Label> labels, const Shape& shape) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t sum = 0;
    for (size_t i = 0; i < shape.counts.size(); ++i) {
      sum += static_cast<uint64_t>(shape.counts[i]);
      const double bound =
          i < shape.bounds.size() ? shape.bounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({sum, bound});
    }
    metric.histogram.sample_count = sum;
    metric.histogram.sample_sum = shape.sum;
    family_.metric.push_back(std::move(metric));
  }

  bool is_empty() const { return family_.metric.empty(); }
  prometheus::MetricFamily take() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

}  // namespace headrace::server
