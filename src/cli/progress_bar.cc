// See progress_bar.h.
#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/os/terminal.h"
#include "cli/terminal_text.h"

namespace headrace::cli {

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double seconds,
                          int columns) {
  constexpr int kBarColumns = 24;
  if (total == 0) {
    return done == 0 ? label : label + " " + size_text(done);
  }
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(share * kBarColumns);
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < kBarColumns) bar += '>';
  bar.append(static_cast<size_t>(kBarColumns) - std::min<size_t>(bar.size(), kBarColumns), ' ');
  std::string line = fmt::format("{} [{}] {:3.0f} %", label, bar, share * 100);
  const std::string amount = fmt::format(" {} of {}", size_text(done), size_text(total));
  const double speed = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string pace;
  if (speed > 0) {
    pace = fmt::format(", {}/s, {:.0f} s left", size_text(static_cast<uint64_t>(speed)),
                       static_cast<double>(total - std::min(done, total)) / speed);
  }
  const auto room = static_cast<size_t>(std::max(columns - 1, 0));
  if (line.size() + amount.size() <= room) line += amount;
  if (line.size() + pace.size() <= room) line += pace;
  return line.substr(0, room);
}

ProgressBar::ProgressBar()
    : enabled_(is_terminal(StandardStream::error)), begin_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::update(const std::string& label, uint64_t done_bytes, uint64_t total_bytes) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool finished = total_bytes > 0 && done_bytes >= total_bytes;
  if (!finished && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const int columns = terminal_columns(StandardStream::error, 80);
  const std::string line = progress_line(label, done_bytes, total_bytes, seconds, columns);
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace headrace::cli
