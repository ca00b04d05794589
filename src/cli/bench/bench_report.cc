// See bench_report.h.
#include "cli/bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/bench/bench_page.h"
#include "cli/json_rows.h"
#include "cli/terminal_text.h"
#include "cli/text_table.h"

namespace headrace::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson row_json(const BenchEntry& entry) {
  const BenchSetting& setting = *entry.setting;
  const BenchRow& row = entry.row;
  const SampleSummary& rate = row.rate;
  OrderedJson out;
  out["test"] = bench_test_name(row.test);
  out["n_prompt"] = row.test.n_prompt;
  out["n_gen"] = row.test.n_gen;
  out["parallel"] = row.test.parallel;
  out["depth"] = row.test.depth;
  out["avg_ts"] = rate.avg;
  out["min_ts"] = rate.min;
  out["median_ts"] = rate.median;
  out["stddev_ts"] = rate.stddev;
  out["bound_ts"] = row.bound;
  out["fraction_of_bound"] = row.fraction_of_bound();
  add_setting(out, setting);
  out["max_ts"] = rate.max;
  out["samples_ts"] = row.samples;
  out["bound_kind"] = row.is_bound_by_compute ? "compute" : "bandwidth";
  out["bytes_per_token"] = row.bytes_per_token;
  out["ops_per_token"] = 2 * row.macs_per_token;
  out["read_gbs"] = 1e-9 * row.read_bytes_per_second;
  out["read_bytes"] = row.read_bytes;
  out["peak_gops"] = 2e-9 * setting.peak_macs_per_second;
  out["peak_instruction"] = setting.peak_instruction;
  out["steady"] = row.unsteady.empty();
  out["notes"] = row.unsteady;
  add_setting_details(out, setting);
  return out;
}

OrderedJson all_json(const std::vector<BenchEntry>& entries) {
  OrderedJson rows = OrderedJson::array();
  for (const BenchEntry& entry : entries) rows.push_back(row_json(entry));
  return rows;
}

struct BenchColumn {
  std::string head;
  bool is_right = true;
  std::function<std::string(const BenchEntry&)> cell;
};

/// Columns of what differs between the settings.
std::vector<BenchColumn> columns_of_settings(const std::vector<BenchEntry>& entries) {
  std::vector<std::shared_ptr<const BenchSetting>> settings;
  for (const BenchEntry& entry : entries) settings.push_back(entry.setting);
  std::vector<BenchColumn> out;
  for (const SettingColumn& column : setting_columns(settings)) {
    out.push_back({column.head, column.is_right,
                   [cell = column.cell](const BenchEntry& e) { return cell(*e.setting); }});
  }
  return out;
}

std::vector<BenchColumn> figure_columns() {
  return {
      {"test", false, [](const BenchEntry& e) { return bench_test_name(e.row.test); }},
      {"tokens/s", true,
       [](const BenchEntry& e) {
         return figure(e.row.rate.median) + (e.row.unsteady.empty() ? "" : " ~");
       }},
      {"min", true, [](const BenchEntry& e) { return figure(e.row.rate.min); }},
      {"avg", true, [](const BenchEntry& e) { return figure(e.row.rate.avg); }},
      {"stddev", true, [](const BenchEntry& e) { return figure(e.row.rate.stddev); }},
      {"bound", true, [](const BenchEntry& e) { return figure(e.row.bound); }},
      {"of bound", true,
       [](const BenchEntry& e) {
         return fmt::format("{:.1f} %", 100 * e.row.fraction_of_bound());
       }},
      {"bound by", false,
       [](const BenchEntry& e) {
         if (e.row.is_bound_by_compute) {
           return fmt::format("{:.0f} GOP/s", 2e-9 * e.setting->peak_macs_per_second);
         }
         return fmt::format("{:.1f} GB/s of {}", 1e-9 * e.row.read_bytes_per_second,
                            size_text(e.row.read_bytes));
       }},
  };
}

std::string table(const std::vector<BenchColumn>& columns, const std::vector<BenchEntry>& entries) {
  std::vector<TableColumn> heads;
  for (const BenchColumn& column : columns) heads.push_back({column.head, column.is_right});
  std::vector<std::vector<std::string>> rows;
  for (const BenchEntry& entry : entries) {
    auto& row = rows.emplace_back();
    for (const BenchColumn& column : columns) row.push_back(column.cell(entry));
  }
  return text_table(heads, rows);
}

}  // namespace

std::string bench_markdown(const std::vector<BenchEntry>& entries) {
  if (entries.empty()) return "";
  std::string text;
  std::vector<const BenchSetting*> told;
  for (const BenchEntry& entry : entries) {
    if (std::find(told.begin(), told.end(), entry.setting.get()) != told.end()) continue;
    told.push_back(entry.setting.get());
    text += printable(setting_text(*entry.setting)) + "\n";
  }
  std::vector<BenchColumn> columns = columns_of_settings(entries);
  for (BenchColumn& column : figure_columns()) columns.push_back(std::move(column));
  text += "\n" + table(columns, entries);
  text += fmt::format(
      "\ntokens/s is the median of {} {}. Bounds were measured in this run: {}, and reading as "
      "much "
      "memory as a step reads.\n",
      entries.front().row.samples.size(),
      entries.front().row.samples.size() == 1 ? "repetition" : "repetitions",
      entries.front().setting->peak_instruction);
  std::set<std::string> reasons;
  for (const BenchEntry& entry : entries) {
    for (const std::string& reason : entry.row.unsteady) {
      reasons.insert(bench_test_name(entry.row.test) + ": " + reason);
    }
  }
  if (!reasons.empty())
    text += "\n~ unsteady figures, to be measured again on a quiet machine:\n\n";
  for (const std::string& reason : reasons) text += "- " + reason + "\n";
  return text;
}

std::string bench_json(const std::vector<BenchEntry>& entries) {
  return json_text(all_json(entries), 1) + "\n";
}

std::string bench_csv(const std::vector<BenchEntry>& entries) {
  return csv_text(all_json(entries));
}

std::string bench_html(const std::vector<BenchEntry>& entries) {
  const auto text = [](const unsigned char* bytes, size_t size) {
    return std::string_view(reinterpret_cast<const char*>(bytes), size);
  };
  return page_text(text(kBenchPage, kBenchPageSize), text(kChartJs, kChartJsSize),
                   all_json(entries));
}

}  // namespace headrace::cli
