// What the server measures of its requests, as Prometheus wants it. Names of engines that have
// dashboards already (vllm:...) where they mean the same, ours (headrace:...) for the rest. Must
// not know HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/os/temperature.h"
#include "headrace/stats.h"
#include "server/http/http_server.h"
#include "server/model_set.h"
#include "server/request_trace.h"

namespace headrace::server {

/// Cumulative counts: `count[i]` of `num` values were at most `le[i]`; the last one is of all.
struct HistogramShape {
  std::vector<double> le;
  std::vector<int64_t> count;
};

/// Which part of its life a request was in when its client went.
enum class GonePhase : uint8_t { queue, prefill, decode };

class Metrics {
 public:
  /// `sensors_root`: see TemperatureSensors.
  explicit Metrics(const std::string& sensors_root);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // From any thread.
  /// All that is measured of it, at 0 from now on: a rate over what comes first is known then.
  void add_model(const std::string& model);
  void count_answered(const RequestTrace& trace);
  /// One of so many completions whose client did not get all of them: those that had ended count as
  /// they ended, the others as "abort", or "error" where the request failed.
  void count_unanswered(const RequestTrace& trace, size_t num_completions);
  /// Time between two tokens of one completion.
  void observe_gaps(const std::string& model, std::span<const double> seconds);
  void count_gone(const std::string& model, GonePhase phase);
  void count_refused(int status);

  HistogramShape first_token_seconds(const std::string& model) const;
  HistogramShape gap_seconds(const std::string& model) const;

  /// All of it in Prometheus' text format, with what engines, connections and sensors tell now.
  std::string text(const ModelSet* models, const HttpStats& http) const;

 private:
  struct Families;
  TemperatureSensors sensors_;
  std::unique_ptr<Families> families_;
};

}  // namespace headrace::server
