// What headrace batch shows besides the answers: its progress, and what there was in the end.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/batch_run.h"
#include "api/served_model.h"
#include "cli/progress_bar.h"
#include "headrace/engine.h"

namespace headrace::cli {

/// A bar on a terminal.
class BatchProgress {
 public:
  /// Of `input`, a path or "-". `engine` must outlive it.
  BatchProgress(const std::string& input, const Engine& engine, bool is_quiet);

  void show(const api::BatchCounts& counts);
  double seconds() const;

 private:
  const bool is_quiet_;
  const Engine& engine_;
  double total_bytes_ = 0;  ///< 0: unknown
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  ProgressBar bar_;
};

struct BatchSummary {
  std::string input;
  std::string output;
  api::BatchCounts counts;
  int64_t num_failed_before = 0;
  double seconds = 0;
};

nlohmann::json summary_json(const BatchSummary& summary, const api::ServedModel& model,
                            const std::vector<std::string>& warnings);
/// The same for people: lines.
std::string summary_text(const BatchSummary& summary);

}  // namespace headrace::cli
