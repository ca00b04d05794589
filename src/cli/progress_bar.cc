// See progress_bar.h.
#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/os/terminal.h"
#include "cli/terminal_text.h"

namespace headrace::cli {

std::string share_line(const std::string& label, double share,
                       const std::vector<std::string>& details, int columns) {
  constexpr int kBarColumns = 24;
  std::string line = label;
  if (share >= 0) {
    share = std::min(1.0, share);
    const int filled = static_cast<int>(share * kBarColumns);
    std::string bar(static_cast<size_t>(filled), '=');
    if (filled < kBarColumns) bar += '>';
    bar.append(static_cast<size_t>(kBarColumns) - std::min<size_t>(bar.size(), kBarColumns), ' ');
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
                          int columns) {
  if (total == 0) {
    return done == 0 ? label : label + " " + size_text(done);
  }
  std::vector<std::string> details = {fmt::format("{} of {}", size_text(done), size_text(total))};
  const double speed = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  if (speed > 0) {
    details.push_back(fmt::format("{}/s, {:.0f} s left", size_text(static_cast<uint64_t>(speed)),
                                  static_cast<double>(total - std::min(done, total)) / speed));
  }
  return share_line(label, static_cast<double>(done) / static_cast<double>(total), details,
                    columns);
}

ProgressBar::ProgressBar()
    : enabled_(is_terminal(StandardStream::error)), begin_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
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
  if (!is_due(total_bytes > 0 && done_bytes >= total_bytes)) return;
  const double seconds = std::chrono::duration<double>(last_ - begin_).count();
  const int columns = terminal_columns(StandardStream::error, 80);
  draw(progress_line(label, done_bytes, total_bytes, seconds, columns));
}

void ProgressBar::update_share(const std::string& label, double share,
                               const std::vector<std::string>& details) {
  if (!is_due(false)) return;
  draw(share_line(label, share, details, terminal_columns(StandardStream::error, 80)));
}

}  // namespace headrace::cli
