// See batch_report.h.
#include "cli/batch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

namespace headrace::cli {
namespace {

std::string time_left(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(seconds, 0.0));
  if (whole < 120) return fmt::format("{} s left", whole);
  if (whole < 7200) return fmt::format("{} min left", whole / 60);
  return fmt::format("{} h {} min left", whole / 3600, whole / 60 % 60);
}

double per_second(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

BatchProgress::BatchProgress(const std::string& input, const Engine& engine, bool is_quiet)
    : is_quiet_(is_quiet), engine_(engine) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(input, failed);
  if (!failed) total_bytes_ = static_cast<double>(size);
}

void BatchProgress::show(const api::BatchCounts& counts) {
  if (is_quiet_) return;
  const double now = seconds();
  // The last ones are left out where a terminal is narrow.
  std::vector<std::string> details = {
      fmt::format("{} done", counts.num_answered),
      fmt::format("{:.0f} tokens/s", per_second(engine_.stats().generated_tokens, now))};
  const auto done = static_cast<double>(std::max(counts.input_bytes, counts.skipped_bytes));
  const double worked = done - static_cast<double>(counts.skipped_bytes);
  if (total_bytes_ > 0 && worked > 0) {
    details.push_back(time_left(now * (total_bytes_ - done) / worked));
  }
  if (counts.num_failed > 0) details.push_back(fmt::format("{} failed", counts.num_failed));
  bar_.update_share("batch", total_bytes_ > 0 ? done / total_bytes_ : -1, details);
}

double BatchProgress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

nlohmann::json summary_json(const BatchSummary& summary, const api::ServedModel& model,
                            const std::vector<std::string>& warnings) {
  const api::BatchCounts& counts = summary.counts;
  return {{"input", summary.input},
          {"output", summary.output},
          {"model", model.name},
          {"system_fingerprint", model.fingerprint},
          {"answered", counts.num_answered},
          {"failed", counts.num_failed},
          {"answered_before", counts.num_skipped},
          {"failed_before", summary.num_failed_before},
          {"prompt_tokens", counts.prompt_tokens},
          {"cached_tokens", counts.cached_tokens},
          {"completion_tokens", counts.completion_tokens},
          {"seconds", summary.seconds},
          {"completion_tokens_per_second", per_second(counts.completion_tokens, summary.seconds)},
          {"warnings", warnings}};
}

std::string summary_text(const BatchSummary& summary) {
  const api::BatchCounts& counts = summary.counts;
  std::string text = fmt::format("answered    {}", counts.num_answered);
  if (counts.num_failed > 0) text += fmt::format(", of these {} with an error", counts.num_failed);
  if (counts.num_skipped > 0) {
    text += fmt::format(" ({} before", counts.num_skipped);
    if (summary.num_failed_before > 0) {
      text += fmt::format(", of these {} with an error", summary.num_failed_before);
    }
    text += ")";
  }
  return text + fmt::format(
                    "\nprompts     {} tokens, {} of them cached\n"
                    "generated   {} tokens in {:.1f} s, {:.1f} tokens/s\n",
                    counts.prompt_tokens, counts.cached_tokens, counts.completion_tokens,
                    summary.seconds, per_second(counts.completion_tokens, summary.seconds));
}

}  // namespace headrace::cli
