// Benchmark results as text: marks, quoting, and names that come from a user's file.
#include "cli/bench/bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/bench/test_setting.h"

namespace headrace::cli {
namespace {

BenchEntry bench_entry(const std::shared_ptr<BenchSetting>& setting, BenchTest test) {
  BenchEntry out;
  out.setting = setting;
  out.row.test = test;
  out.row.samples = {90, 100, 110};
  out.row.rate = summarize(out.row.samples);
  out.row.bound = 400;
  out.row.bytes_per_token = 1e8;
  out.row.macs_per_token = 1.5e8;
  out.row.read_bytes = 100000000;
  out.row.read_bytes_per_second = 40e9;
  return out;
}

TEST(BenchReport, MarksUnsteadyRowsAndSaysWhy) {
  std::vector<BenchEntry> entries = {bench_entry(setting("m"), {.n_prompt = 512}),
                                     bench_entry(setting("m"), {.n_gen = 128, .depth = 4096})};
  entries[0].row.is_bound_by_compute = true;
  entries[1].row.unsteady = {"the fan was loud"};
  const std::string text = bench_markdown(entries);
  EXPECT_NE(text.find("| pp512         |    100.0 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| tg128 @ d4096 |  100.0 ~ |"), std::string::npos) << text;
  EXPECT_NE(text.find("25.0 % | 1000 GOP/s"), std::string::npos) << text;
  EXPECT_NE(text.find("25.0 % | 40.0 GB/s of 100.0 MB"), std::string::npos) << text;
  EXPECT_NE(text.find("- tg128 @ d4096: the fan was loud"), std::string::npos) << text;
  EXPECT_EQ(bench_markdown({}), "");
}

TEST(BenchReport, ColumnsForWhatDiffers) {
  const auto one = setting("m");
  const auto other = setting("m");
  other->isa = "avx512";
  const std::string text =
      bench_markdown({bench_entry(one, {.n_gen = 8}), bench_entry(other, {.n_gen = 8})});
  EXPECT_NE(text.find("| isa    | test |"), std::string::npos) << text;
  EXPECT_EQ(text.find("| threads |"), std::string::npos) << text;
}

TEST(BenchReport, NamesAreQuotedAndHarmless) {
  const std::string name = "a,\"b\"\x1b[31m<script>\xff";
  const std::vector<BenchEntry> entries = {bench_entry(setting(name), {.n_gen = 8})};
  EXPECT_NE(bench_csv(entries).find(",\"a,\"\"b\"\""), std::string::npos);
  EXPECT_EQ(bench_markdown(entries).find('\x1b'), std::string::npos);
  const auto rows = nlohmann::json::parse(bench_json(entries));
  EXPECT_EQ(rows[0]["model"], "a,\"b\"\x1b[31m<script>\xef\xbf\xbd");
  EXPECT_EQ(rows[0]["ops_per_token"], 3e8);
  EXPECT_EQ(rows[0]["fraction_of_bound"], 0.25);
  EXPECT_EQ(bench_html(entries).find("[31m<script>"), std::string::npos);
}

}  // namespace
}  // namespace headrace::cli
