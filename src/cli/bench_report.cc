// See bench_report.h.
#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/bench_page.h"
#include "cli/terminal_text.h"

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
  out["cpu"] = setting.cpu;
  out["isa"] = setting.isa;
  out["threads"] = setting.num_threads;
  out["kv_type"] = setting.kv_type;
  out["model"] = setting.model;
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
  out["kernels"] = setting.kernels;
  out["processors"] = setting.num_processors;
  out["chunk_tokens"] = setting.chunk_tokens;
  out["model_file"] = setting.file;
  out["model_bytes"] = setting.weight_bytes;
  out["packed"] = setting.is_packed;
  out["model_parameters"] = setting.num_parameters;
  return out;
}

OrderedJson all_json(const std::vector<BenchEntry>& entries) {
  OrderedJson rows = OrderedJson::array();
  for (const BenchEntry& entry : entries) rows.push_back(row_json(entry));
  return rows;
}

std::string dump(const OrderedJson& value, int indent) {
  return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string csv_field(const OrderedJson& value) {
  std::string text;
  if (value.is_array()) {
    for (const auto& part : value) {
      text += (text.empty() ? "" : "; ") +
              (part.is_string() ? part.get<std::string>() : dump(part, -1));
    }
  } else {
    text = value.is_string() ? value.get<std::string>() : dump(value, -1);
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// Three digits that count, as people write them.
std::string figure(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 100 ? 1 : 2);
}

std::string setting_text(const BenchSetting& setting) {
  return fmt::format(
      "{}, {:.0f} M parameters, {} of weights{}; {}, {}, {} {} of {}, KV {}, steps of {}",
      setting.model, 1e-6 * static_cast<double>(setting.num_parameters),
      size_text(setting.weight_bytes), setting.is_packed ? "" : " in the file", setting.cpu,
      setting.kernels, setting.num_threads, setting.num_threads == 1 ? "thread" : "threads",
      setting.num_processors, setting.kv_type, setting.chunk_tokens);
}

struct Column {
  std::string head;
  bool is_right = true;
  std::function<std::string(const BenchEntry&)> cell;
};

/// Columns of what differs between the settings.
std::vector<Column> setting_columns(const std::vector<BenchEntry>& entries) {
  const std::vector<Column> all = {
      {"model", false, [](const BenchEntry& e) { return printable(e.setting->model, 40); }},
      {"isa", false, [](const BenchEntry& e) { return e.setting->isa; }},
      {"threads", true, [](const BenchEntry& e) { return std::to_string(e.setting->num_threads); }},
      {"KV", false, [](const BenchEntry& e) { return e.setting->kv_type; }},
      {"steps of", true,
       [](const BenchEntry& e) { return std::to_string(e.setting->chunk_tokens); }},
  };
  std::vector<Column> out;
  for (const Column& column : all) {
    std::set<std::string> values;
    for (const BenchEntry& entry : entries) values.insert(column.cell(entry));
    if (values.size() > 1) out.push_back(column);
  }
  return out;
}

std::vector<Column> figure_columns() {
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

std::string table(const std::vector<Column>& columns, const std::vector<BenchEntry>& entries) {
  std::vector<std::vector<std::string>> cells(columns.size());
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = std::max<size_t>(columns[c].head.size(), 3);
    for (const BenchEntry& entry : entries) {
      cells[c].push_back(columns[c].cell(entry));
      width = std::max(width, cells[c].back().size());
    }
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell_of) {
    std::string text = "|";
    for (size_t c = 0; c < columns.size(); ++c) {
      text += columns[c].is_right ? fmt::format(" {:>{}} |", cell_of(c), widths[c])
                                  : fmt::format(" {:<{}} |", cell_of(c), widths[c]);
    }
    return text + "\n";
  };
  std::string text = line([&](size_t c) { return columns[c].head; });
  text += line([&](size_t c) {
    std::string rule(widths[c], '-');
    if (columns[c].is_right) rule.back() = ':';
    return rule;
  });
  for (size_t r = 0; r < entries.size(); ++r) text += line([&](size_t c) { return cells[c][r]; });
  return text;
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
  std::vector<Column> columns = setting_columns(entries);
  for (Column& column : figure_columns()) columns.push_back(std::move(column));
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
  return dump(all_json(entries), 1) + "\n";
}

std::string bench_csv(const std::vector<BenchEntry>& entries) {
  std::string text;
  for (const OrderedJson& row : all_json(entries)) {
    std::string head;
    std::string line;
    for (const auto& [key, value] : row.items()) {
      head += (head.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + csv_field(value);
    }
    if (text.empty()) text = head + "\n";
    text += line + "\n";
  }
  return text;
}

bool has_bench_page() {
  return kBenchPageHasChart;
}

std::string bench_html(const std::vector<BenchEntry>& entries) {
  // Inside a script element only "<" could end it.
  std::string data;
  for (const char c : dump(all_json(entries), -1)) {
    data += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  const std::string_view page(reinterpret_cast<const char*>(kBenchPage), kBenchPageSize);
  constexpr std::string_view kPlace = "@ROWS@";
  const size_t at = page.find(kPlace);
  return std::string(page.substr(0, at)) + data + std::string(page.substr(at + kPlace.size()));
}

}  // namespace headrace::cli
