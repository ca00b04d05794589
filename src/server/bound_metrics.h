// What models reach of what the machine allows, and how hot that makes it, as families of
// Prometheus.
#pragma once

#include <prometheus/metric_family.h>

#include <span>
#include <string>
#include <vector>

#include "app/model_bounds.h"
#include "base/os/temperature.h"
#include "headrace/stats.h"

namespace headrace::server {

/// A model's figures. `bounds` may be null: nothing was measured.
struct BoundSample {
  std::string model;
  const ModelBounds* bounds = nullptr;
  EngineStats stats;
};

/// Without the models that have no bounds, and without families that have no value.
void add_bound_metrics(std::span<const BoundSample> models,
                       std::vector<prometheus::MetricFamily>& to);

/// Nothing where no sensor tells.
void add_temperature(const TemperatureSensors& sensors, std::vector<prometheus::MetricFamily>& to);

}  // namespace headrace::server
