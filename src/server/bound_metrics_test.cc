// Figures beside their bounds, as Prometheus gets them; and which are left out where nothing was
// measured.
#include "server/bound_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "server/metrics.h"

namespace headrace::server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::vector<prometheus::MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

ModelBounds measured() {
  constexpr WeightWork kWeights{
      .layer_bytes = 100, .head_bytes = 20, .top_bytes = 10, .layer_macs = 10};
  return {kWeights, StepCost(kWeights, {}, KvType::f16, 0), MachineLimits{1100, 1000}, 20};
}

BoundSample sample(const char* name, const ModelBounds* bounds) {
  BoundSample out;
  out.model = name;
  out.bounds = bounds;
  out.stats.decode = {.num_steps = 10, .num_top_steps = 4, .ns = 9'000'000'000, .kv_bytes = 840};
  out.stats.recent_decode = {
      .num_steps = 2, .num_top_steps = 1, .ns = 1'000'000'000, .kv_bytes = 45};
  return out;
}

TEST(BoundMetrics, SharesAndBounds) {
  const ModelBounds bounds = measured();
  std::vector<prometheus::MetricFamily> out;
  add_bound_metrics(std::vector{sample("small", &bounds), sample("unknown", nullptr)}, out);
  const std::string text = text_of(out);
  // 2 * 100 + 20 + 10 + 45 bytes in a second, of 1100.
  EXPECT_THAT(text, HasSubstr("headrace:fraction_of_bandwidth{model_name=\"small\",engine=\"0\"} "
                              "0.25\n"));
  EXPECT_THAT(text, HasSubstr("memory_bandwidth_bytes_per_second{model_name=\"small\","
                              "engine=\"0\"} 1100\n"));
  EXPECT_THAT(text, HasSubstr("headrace:decode_read_bytes_total{model_name=\"small\","
                              "engine=\"0\"} 2000\n"));
  EXPECT_THAT(text, HasSubstr("headrace:bound_tokens_per_second{model_name=\"small\","
                              "engine=\"0\",phase=\"prefill\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("headrace:bound_tokens_per_second{model_name=\"small\","
                              "engine=\"0\",phase=\"decode\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE headrace:fraction_of_bandwidth gauge\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE headrace:decode_read_bytes_total counter\n"));
  EXPECT_THAT(text, Not(HasSubstr("unknown")));
}

TEST(BoundMetrics, AnIdleModelUsesNothing) {
  const ModelBounds bounds = measured();
  BoundSample idle = sample("small", &bounds);
  idle.stats.recent_decode = {};
  std::vector<prometheus::MetricFamily> out;
  add_bound_metrics(std::vector{idle}, out);
  EXPECT_THAT(text_of(out), HasSubstr("headrace:fraction_of_bandwidth{model_name=\"small\","
                                      "engine=\"0\"} 0\n"));
}

TEST(BoundMetrics, NothingMeasuredNoSeries) {
  std::vector<prometheus::MetricFamily> out;
  add_bound_metrics(std::vector{sample("unknown", nullptr)}, out);
  EXPECT_TRUE(out.empty());
}

TEST(Metrics, TemperatureWhereThereIsASensor) {
  const std::string root = testing::TempDir() + "bound_metrics_" + std::to_string(::getpid());
  EXPECT_THAT(Metrics(root).text(nullptr, {}), Not(HasSubstr("headrace:temperature_celsius")));
  std::filesystem::create_directories(root + "/hwmon/hwmon0");
  std::ofstream(root + "/hwmon/hwmon0/name") << "k10temp\n";
  std::ofstream(root + "/hwmon/hwmon0/temp1_input") << "61250\n";
  EXPECT_THAT(Metrics(root).text(nullptr, {}), HasSubstr("\nheadrace:temperature_celsius 61.25\n"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace headrace::server
