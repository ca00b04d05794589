// Loads as text: figures that are missing, names that come from a user's file, answers compared.
#include "cli/bench/load_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/bench/test_setting.h"

namespace headrace::cli {
namespace {

LoadEntry load_entry(const std::string& model = "m") {
  LoadEntry out;
  out.setting = setting(model);
  LoadResult& result = out.result;
  result.plan.pace.concurrency = 4;
  result.plan.max_sequences = 4;
  result.fingerprint = 0xabc;
  LoadSummary& summary = result.summary;
  summary.num_requests = summary.num_ok = 10;
  summary.seconds = summary.occupied_seconds = 2;
  summary.prompt_tokens = 300;
  summary.output_tokens = 100;
  summary.ttft_ms = distribution({10, 20, 30});
  summary.e2e_ms = distribution({100, 200});
  summary.kv_usage.add(0.5, 1);
  summary.series.resize(3);
  summary.answers_hash = 7;
  return out;
}

void add_ideal(LoadEntry& entry) {
  BenchRow prompt;
  prompt.test.n_prompt = 256;
  prompt.rate = summarize({1000});
  prompt.bound = 2000;
  BenchRow decode = prompt;
  decode.test = {.n_gen = 32, .parallel = 4};
  decode.rate = summarize({100});
  LoadIdeal ideal;
  ideal.rows = std::make_shared<std::vector<BenchRow>>(std::vector<BenchRow>{prompt, decode});
  ideal.batch = 4;
  ideal.seconds = 1.5;
  ideal.seconds_of_batches = 1.8;
  ideal.bound_seconds = 0.6;
  entry.result.ideal = ideal;
}

TEST(LoadReport, FiguresInEveryFormat) {
  LoadEntry one = load_entry();
  add_ideal(one);
  one.result.plan.slo.ttft_ms = 25;
  one.result.summary.num_good = 6;
  const std::string text = load_markdown({one});
  for (const char* part : {"| concurrency 4 |       10 |", "|           50.00 |        200.0 |",
                           "75.0 % |         90.0 % |   30.0 % | 60.0 % |   3.00 |", "tg32 x4",
                           "| first token      | 20.00 | 20.00 |"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const auto row = nlohmann::json::parse(load_json({one}))[0];
  EXPECT_EQ(row["output_tokens_per_s"], 50);
  EXPECT_EQ(row["fraction_of_ideal"], 0.75);
  EXPECT_EQ(row["good_share"], 0.6);
  EXPECT_EQ(row["ttft_p50_ms"], 20);
  EXPECT_EQ(row["decode_ts"], 100);
  EXPECT_EQ(row["percentiles_ms"]["ttft"].size(), 101U);
  EXPECT_EQ(row["series"].size(), 3U);
  EXPECT_EQ(row["rates"][1]["test"], "tg32 x4");
  EXPECT_EQ(row["answers"], "0000000000000007");
  const std::string csv = load_csv({one});
  EXPECT_EQ(csv.rfind("load,batching,rate,concurrency,", 0), 0U);
  EXPECT_EQ(csv.find("series"), std::string::npos);
}

TEST(LoadReport, WhatWasNotMeasuredIsNull) {
  LoadEntry none;
  none.setting = setting("m");
  none.result.plan.pace.rate = 2;
  const std::string json = load_json({none});
  const auto row = nlohmann::json::parse(json)[0];
  for (const char* key : {"ttft_p50_ms", "itl_max_ms", "ideal_s", "slo", "good_share",
                          "kv_usage_mean", "concurrency"}) {
    EXPECT_TRUE(row[key].is_null()) << key;
  }
  EXPECT_EQ(json.find("nan"), std::string::npos);
  EXPECT_NE(load_markdown({none}).find("| first token      |    - |"), std::string::npos)
      << load_markdown({none});
  EXPECT_EQ(load_markdown({}), "");
}

TEST(LoadReport, ColumnsForWhatDiffers) {
  LoadEntry other = load_entry();
  other.result.plan.max_sequences = 2;
  other.result.plan.batching = LoadBatching::static_batch;
  const std::string text = load_markdown({load_entry(), other});
  EXPECT_NE(text.find("| load                 |  np |"), std::string::npos) << text;
  EXPECT_NE(text.find("| concurrency 4 static |   2 |"), std::string::npos) << text;
  EXPECT_EQ(load_markdown({load_entry(), load_entry()}).find("| np"), std::string::npos);
}

TEST(LoadReport, SaysWhatWentWrong) {
  LoadEntry bad = load_entry();
  bad.result.unsteady = {"the fan was loud"};
  bad.result.summary.num_ok = 8;
  bad.result.summary.errors["overloaded"] = 2;
  bad.result.summary.rungs[static_cast<size_t>(MemoryRung::preempt)] = 3;
  const std::string text = load_markdown({bad});
  for (const char* part : {"concurrency 4 ~", "8 of 10", "- concurrency 4: the fan was loud",
                           "preempt 3, failed (overloaded) 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(LoadReport, SameRequestsSameAnswers) {
  const LoadEntry one = load_entry();
  LoadEntry other = load_entry();
  EXPECT_TRUE(differing_answers({one, other}).empty());
  other.result.summary.answers_hash = 8;
  other.result.plan.batching = LoadBatching::static_batch;
  ASSERT_EQ(differing_answers({one, other, one}).size(), 1U);
  EXPECT_EQ(differing_answers({one, other})[0],
            "concurrency 4 static gave other answers than concurrency 4 to the same requests");
  other.result.fingerprint = 1;
  EXPECT_TRUE(differing_answers({one, other}).empty());
  other.result.fingerprint = one.result.fingerprint;
  other.setting = setting("n");
  EXPECT_TRUE(differing_answers({one, other}).empty());
}

TEST(LoadReport, NamesAreHarmless) {
  const std::string name = "a\x1b[31m</script><script>@ROWS@/*CHART_JS*/\xff";
  const std::vector<LoadEntry> entries = {load_entry(name)};
  EXPECT_EQ(load_markdown(entries).find('\x1b'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(load_json(entries))[0]["model"],
            "a\x1b[31m</script><script>@ROWS@/*CHART_JS*/\xef\xbf\xbd");
  const std::string page = load_html(entries);
  EXPECT_EQ(page.find("[31m</script>"), std::string::npos);
  EXPECT_NE(page.find("@ROWS@/*CHART_JS*/"), std::string::npos) << "it stays a name";
}

}  // namespace
}  // namespace headrace::cli
