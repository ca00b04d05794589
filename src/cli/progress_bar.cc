// See progress_bar.h.
#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/os/terminal.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

/// "42 s", "12 min", "3.5 h".
std::string time_left(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

/// A shorter bar where the details would not fit beside a long one.
int bar_columns_for(const std::string& label, const std::vector<std::string>& details,
                    int columns) {
  constexpr int kLong = 24;
  constexpr int kShort = 10;
  size_t needed = label.size() + kLong + std::string_view(" [] 100 %").size();
  for (const std::string& detail : details) needed += detail.size() + 2;
  return needed <= static_cast<size_t>(std::max(columns - 1, 0)) ? kLong : kShort;
}

}  // namespace

std::string share_line(const std::string& label, double share,
                       const std::vector<std::string>& details, int columns) {
  std::string line = label;
  if (share >= 0) {
    share = std::min(1.0, share);
    const int bar_columns = bar_columns_for(label, details, columns);
    const int filled = static_cast<int>(share * bar_columns);
    std::string bar(static_cast<size_t>(filled), '=');
    if (filled < bar_columns) bar += '>';
    bar.resize(static_cast<size_t>(bar_columns), ' ');
    line += fmt::format(" [{}] {:3.0f} %", bar, share * 100);
  }
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  std::string separator = " ";
  for (const std::string& detail : details) {
    if (line.size() + separator.size() + detail.size() > room) break;
    line += separator + detail;
    separator = ", ";
  }
  return line.substr(0, room);
}

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double seconds,
                          int columns, uint64_t kept) {
  if (total == 0) {
    return done == 0 ? label : label + " " + size_text(done);
  }
  std::vector<std::string> details = {fmt::format("{} of {}", size_text(done), size_text(total))};
  const auto fresh = static_cast<double>(done - std::min(kept, done));
  const double speed = seconds > 0 ? fresh / seconds : 0;
  if (speed > 0) {
    const double left = static_cast<double>(total - std::min(done, total)) / speed;
    details.push_back(
        fmt::format("{}/s, {} left", size_text(static_cast<uint64_t>(speed)), time_left(left)));
  }
  return share_line(label, static_cast<double>(done) / static_cast<double>(total), details,
                    columns);
}

std::string file_label(const std::string& file, int number, int num_files, uint64_t done,
                       uint64_t total, int columns) {
  constexpr int kColumnsForName = 120;
  constexpr size_t kMaxNameBytes = 36;
  std::string label = fmt::format("file {}/{}", number, num_files);
  if (columns >= kColumnsForName) label += " " + printable(file, kMaxNameBytes);
  if (total > 0) {
    label += fmt::format(" {:.0f} %", 100 * static_cast<double>(done) / static_cast<double>(total));
  }
  return label + ", all";
}

ProgressBar::ProgressBar()
    : enabled_(is_terminal(StandardStream::error)), begin_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

bool ProgressBar::is_due(bool is_finished) {
  if (!enabled_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!is_finished && now - last_ < std::chrono::milliseconds(100)) return false;
  last_ = now;
  return true;
}

void ProgressBar::draw(const std::string& line) {
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::update(const std::string& label, uint64_t done_bytes, uint64_t total_bytes) {
  if (!kept_bytes_) {
    kept_bytes_ = done_bytes;
    begin_ = std::chrono::steady_clock::now();
  }
  if (!is_due(total_bytes > 0 && done_bytes >= total_bytes)) return;
  const double seconds = std::chrono::duration<double>(last_ - begin_).count();
  const int columns = terminal_columns(StandardStream::error, 80);
  draw(progress_line(label, done_bytes, total_bytes, seconds, columns, *kept_bytes_));
}

void ProgressBar::update_share(const std::string& label, double share,
                               const std::vector<std::string>& details) {
  if (!is_due(false)) return;
  draw(share_line(label, share, details, terminal_columns(StandardStream::error, 80)));
}

}  // namespace headrace::cli
