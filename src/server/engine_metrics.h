// What engines and connections count by themselves, as families of Prometheus.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "server/http/http_server.h"
#include "server/model_set.h"

namespace headrace::server {

/// `models`: null while they are loaded.
void add_engine_metrics(const ModelSet* models, const HttpStats& http,
                        std::vector<prometheus::MetricFamily>& to);

}  // namespace headrace::server
