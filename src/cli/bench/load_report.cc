// See load_report.h.
#include "cli/bench/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/bench/bench_page.h"
#include "cli/bench/load_rows.h"
#include "cli/json_rows.h"
#include "cli/terminal_text.h"
#include "cli/text_table.h"

namespace headrace::cli {
namespace {

using Cells = std::vector<std::string>;

struct LoadColumn {
  std::string head;
  bool is_right = true;
  std::function<std::string(const LoadEntry&)> cell;
};

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

/// Columns that tell the loads apart: the load itself, and whatever else differs.
std::vector<LoadColumn> name_columns(const std::vector<LoadEntry>& entries) {
  std::vector<LoadColumn> out = {{"load", false, [](const LoadEntry& e) {
                                    return load_name(e.result.plan) +
                                           (e.result.unsteady.empty() ? "" : " ~");
                                  }}};
  std::vector<LoadColumn> others = {
      {"input", false, [](const LoadEntry& e) { return e.result.plan.spec.input.text(); }},
      {"output", false, [](const LoadEntry& e) { return e.result.plan.spec.output.text(); }},
      {"prefix", true,
       [](const LoadEntry& e) { return std::to_string(e.result.plan.spec.prefix_tokens); }},
      {"np", true, [](const LoadEntry& e) { return std::to_string(e.result.plan.max_sequences); }},
  };
  std::vector<std::shared_ptr<const BenchSetting>> settings;
  for (const LoadEntry& entry : entries) settings.push_back(entry.setting);
  for (const LoadColumn& column : others) {
    std::set<std::string> values;
    for (const LoadEntry& entry : entries) values.insert(column.cell(entry));
    if (values.size() > 1) out.push_back(column);
  }
  for (const SettingColumn& column : setting_columns(settings)) {
    out.push_back({column.head, column.is_right,
                   [cell = column.cell](const LoadEntry& e) { return cell(*e.setting); }});
  }
  return out;
}

std::string table_of(const std::vector<LoadColumn>& columns,
                     const std::vector<LoadEntry>& entries) {
  std::vector<TableColumn> heads;
  for (const LoadColumn& column : columns) heads.push_back({column.head, column.is_right});
  std::vector<Cells> rows;
  for (const LoadEntry& entry : entries) {
    auto& row = rows.emplace_back();
    for (const LoadColumn& column : columns) row.push_back(column.cell(entry));
  }
  return text_table(heads, rows);
}

std::string throughput_table(const std::vector<LoadEntry>& entries) {
  std::vector<LoadColumn> columns = name_columns(entries);
  const auto add = [&](std::string head, std::function<std::string(const LoadSummary&)> cell) {
    columns.push_back({std::move(head), true, [cell = std::move(cell)](const LoadEntry& e) {
                         return cell(e.result.summary);
                       }});
  };
  add("requests", [](const LoadSummary& s) {
    return s.num_ok == s.num_requests ? std::to_string(s.num_ok)
                                      : fmt::format("{} of {}", s.num_ok, s.num_requests);
  });
  add("seconds", [](const LoadSummary& s) { return figure(s.seconds); });
  add("requests/s", [](const LoadSummary& s) { return figure(s.per_second(s.num_ok)); });
  add("output tokens/s",
      [](const LoadSummary& s) { return figure(s.per_second(s.output_tokens)); });
  add("all tokens/s",
      [](const LoadSummary& s) { return figure(s.per_second(s.prompt_tokens + s.output_tokens)); });
  const auto& first = entries.front().result;
  if (first.ideal) {
    columns.push_back(
        {"ideal s", true, [](const LoadEntry& e) { return figure(e.result.ideal->seconds); }});
    columns.push_back({"of ideal", true,
                       [](const LoadEntry& e) { return percent(e.result.fraction_of_ideal()); }});
    columns.push_back({"at its batches", true, [](const LoadEntry& e) {
                         return percent(e.result.fraction_at_its_batches());
                       }});
    columns.push_back({"of bound", true,
                       [](const LoadEntry& e) { return percent(e.result.fraction_of_bound()); }});
  }
  if (!first.plan.slo.is_empty()) {
    add("good", [](const LoadSummary& s) {
      return percent(static_cast<double>(s.num_good) /
                     static_cast<double>(std::max<int64_t>(s.num_requests, 1)));
    });
    add("good/s", [](const LoadSummary& s) { return figure(s.per_second(s.num_good)); });
  }
  return table_of(columns, entries);
}

std::string latency_table(const std::vector<LoadEntry>& entries) {
  const std::vector<std::pair<const char*, Distribution LoadSummary::*>> kinds = {
      {"first token", &LoadSummary::ttft_ms},      {"between tokens", &LoadSummary::itl_ms},
      {"a token, average", &LoadSummary::tpot_ms}, {"whole answer", &LoadSummary::e2e_ms},
      {"queue", &LoadSummary::queue_ms},
  };
  const std::vector<LoadColumn> names = name_columns(entries);
  std::vector<TableColumn> heads;
  for (const LoadColumn& column : names) heads.push_back({column.head, column.is_right});
  heads.push_back({"milliseconds", false});
  for (const char* head : {"mean", "p50", "p90", "p95", "p99", "max"}) heads.push_back({head});
  std::vector<Cells> rows;
  for (const LoadEntry& entry : entries) {
    for (const auto& [name, member] : kinds) {
      const Distribution& times = entry.result.summary.*member;
      auto& row = rows.emplace_back();
      for (const LoadColumn& column : names) row.push_back(column.cell(entry));
      row.emplace_back(name);
      for (const double value :
           {times.mean, times.p50, times.p90, times.p95, times.p99, times.max}) {
        row.push_back(times.count > 0 ? figure(value) : "-");
      }
    }
  }
  return text_table(heads, rows);
}

std::string engine_table(const std::vector<LoadEntry>& entries) {
  std::vector<LoadColumn> columns = name_columns(entries);
  const auto add = [&](std::string head, std::function<std::string(const LoadSummary&)> cell) {
    columns.push_back({std::move(head), true, [cell = std::move(cell)](const LoadEntry& e) {
                         return cell(e.result.summary);
                       }});
  };
  columns.push_back(
      {"processor s", true, [](const LoadEntry& e) { return figure(e.result.processor_seconds); }});
  add("steps", [](const LoadSummary& s) { return std::to_string(s.num_steps); });
  add("tokens a step", [](const LoadSummary& s) {
    return fmt::format("{:.1f} ({:.0f} most)", s.tokens_per_step, s.most_per_step);
  });
  add("scheduling us", [](const LoadSummary& s) { return figure(s.scheduling_us); });
  add("model ms", [](const LoadSummary& s) { return figure(s.forward_ms); });
  add("sampling ms", [](const LoadSummary& s) { return figure(s.sampling_ms); });
  add("KV used", [](const LoadSummary& s) {
    return fmt::format("{} ({} most)", percent(s.kv_usage.mean()), percent(s.kv_usage.max()));
  });
  add("slots used", [](const LoadSummary& s) {
    return fmt::format("{} ({} least)", percent(s.slot_utilisation.mean()),
                       percent(s.slot_utilisation.min()));
  });
  add("prefix hits", [](const LoadSummary& s) { return percent(s.prefix_hit_rate); });
  add("preempted", [](const LoadSummary& s) {
    return std::to_string(s.rungs[static_cast<size_t>(MemoryRung::preempt)]);
  });
  add("generator", [](const LoadSummary& s) { return percent(s.reading_share); });
  return table_of(columns, entries);
}

std::string requests_text(const LoadEntry& entry) {
  const LoadPlan& plan = entry.result.plan;
  const LoadSpec& spec = plan.spec;
  std::string text =
      fmt::format("prompts of {} tokens, answers of {}", spec.input.text(), spec.output.text());
  if (spec.prefix_tokens > 0) {
    text += fmt::format(", behind {} of {} tokens",
                        spec.num_prefixes == 1 ? std::string("a prefix")
                                               : fmt::format("{} prefixes", spec.num_prefixes),
                        spec.prefix_tokens);
  }
  if (spec.num_turns > 1) text += fmt::format(", {} turns", spec.num_turns);
  text += plan.pace.temperature > 0 ? fmt::format("; temperature {}", plan.pace.temperature)
                                    : std::string("; greedy");
  text += fmt::format("; seed {}; {} at once; KV cache of {} tokens, {}", spec.seed,
                      plan.max_sequences, entry.result.kv_tokens, size_text(entry.result.kv_bytes));
  if (!plan.prefix_cache) text += ", no prefix cache";
  if (plan.max_wait_ms > 0) text += fmt::format("; waits up to {} ms", plan.max_wait_ms);
  if (plan.max_slowdown > 0) text += fmt::format("; slowed down at most {}x", plan.max_slowdown);
  if (!plan.slo.is_empty()) text += "; good: " + plan.slo.text();
  return text;
}

/// The tests that the ideal is made of, each once.
std::string rates_text(const std::vector<LoadEntry>& entries) {
  std::set<const std::vector<BenchRow>*> told;
  std::string text;
  for (const LoadEntry& entry : entries) {
    if (!entry.result.ideal || !told.insert(entry.result.ideal->rows.get()).second) continue;
    std::vector<Cells> rows;
    for (const BenchRow& row : *entry.result.ideal->rows) {
      rows.push_back({bench_test_name(row.test),
                      figure(row.rate.median) + (row.unsteady.empty() ? "" : " ~"),
                      figure(row.bound), percent(row.fraction_of_bound())});
    }
    text += "\n" + text_table({{"rate of", false}, {"tokens/s"}, {"bound"}, {"of bound"}}, rows);
  }
  if (text.empty()) return "";
  return "\nIdeal: the prompt tokens that were computed, at the rate of prompts, and the tokens "
         "after each first one, at the rate of the largest batch. \"At its batches\": at the "
         "batches that the steps had. \"Of bound\": the ideal at the bounds of the rates. Measured "
         "in "
         "this run:\n" +
         text;
}

std::string notes_text(const std::vector<LoadEntry>& entries) {
  std::set<std::string> lines;
  for (const LoadEntry& entry : entries) {
    const std::string name = load_name(entry.result.plan);
    for (const std::string& reason : entry.result.unsteady) lines.insert(name + ": " + reason);
  }
  std::string text;
  if (!lines.empty()) text += "\n~ unsteady, to be measured again on a quiet machine:\n\n";
  for (const std::string& line : lines) text += "- " + line + "\n";
  return text;
}

std::string memory_text(const std::vector<LoadEntry>& entries) {
  std::string text;
  for (const LoadEntry& entry : entries) {
    std::string taken;
    for (size_t i = 0; i < kNumMemoryRungs; ++i) {
      if (entry.result.summary.rungs[i] == 0) continue;
      taken +=
          fmt::format("{}{} {}", taken.empty() ? "" : ", ",
                      memory_rung_name(static_cast<MemoryRung>(i)), entry.result.summary.rungs[i]);
    }
    for (const auto& [code, count] : entry.result.summary.errors) {
      taken += fmt::format("{}failed ({}) {}", taken.empty() ? "" : ", ", code, count);
    }
    if (!taken.empty()) text += "- " + load_name(entry.result.plan) + ": " + taken + "\n";
  }
  return text.empty() ? "" : "\nWhen memory or places ran short:\n\n" + text;
}

nlohmann::ordered_json all_rows(const std::vector<LoadEntry>& entries, bool has_plots,
                                bool has_requests) {
  auto rows = nlohmann::ordered_json::array();
  for (const LoadEntry& entry : entries) {
    auto row = load_figures(entry);
    if (has_plots) add_load_plots(row, entry);
    if (has_requests) add_load_requests(row, entry);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::string load_markdown(const std::vector<LoadEntry>& entries) {
  if (entries.empty()) return "";
  std::string text;
  std::vector<std::string> told;
  const auto tell = [&](std::string line) {
    if (std::find(told.begin(), told.end(), line) != told.end()) return;
    text += line + "\n";
    told.push_back(std::move(line));
  };
  for (const LoadEntry& entry : entries) tell(printable(setting_text(*entry.setting)));
  for (const LoadEntry& entry : entries) tell(requests_text(entry));
  text += "\n" + throughput_table(entries);
  text += "\n" + latency_table(entries);
  text += "\n" + engine_table(entries);
  return text + rates_text(entries) + memory_text(entries) + notes_text(entries);
}

std::string load_json(const std::vector<LoadEntry>& entries) {
  return json_text(all_rows(entries, true, true), 1) + "\n";
}

std::string load_csv(const std::vector<LoadEntry>& entries) {
  return csv_text(all_rows(entries, false, false));
}

std::string load_html(const std::vector<LoadEntry>& entries) {
  const auto text = [](const unsigned char* bytes, size_t size) {
    return std::string_view(reinterpret_cast<const char*>(bytes), size);
  };
  return page_text(text(kLoadPage, kLoadPageSize), text(kChartJs, kChartJsSize),
                   all_rows(entries, true, false));
}

std::vector<std::string> differing_answers(const std::vector<LoadEntry>& entries) {
  std::vector<std::string> out;
  for (size_t i = 0; i < entries.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const LoadResult& a = entries[j].result;
      const LoadResult& b = entries[i].result;
      const BenchSetting& mine = *entries[i].setting;
      const BenchSetting& other = *entries[j].setting;
      const bool is_same_work =
          a.fingerprint == b.fingerprint && a.num_conversations == b.num_conversations &&
          a.summary.num_ok == a.summary.num_requests &&
          b.summary.num_ok == b.summary.num_requests &&
          a.summary.num_requests == b.summary.num_requests && mine.file == other.file &&
          mine.isa == other.isa && mine.kv_type == other.kv_type;
      if (!is_same_work) continue;
      if (a.summary.answers_hash != b.summary.answers_hash) {
        out.push_back(load_name(b.plan) + " gave other answers than " + load_name(a.plan) +
                      " to the same requests");
      }
      break;
    }
  }
  return out;
}

}  // namespace headrace::cli
