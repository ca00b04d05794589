// A progress bar on standard error: on a terminal only, nothing when piped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::cli {

/// `label [=====>    ] 45 % ` and as many of `details` as fit, with commas.
std::string share_line(const std::string& label, double share,
                       const std::vector<std::string>& details, int columns);

/// `label [=====>    ] 45 % 42.1 MB of 92.9 MB, 12.3 MB/s, 4 s left` for these figures. `total` 0:
/// unknown. `kept` of the bytes done were there before: they count for no speed.
std::string progress_line(const std::string& label, uint64_t done, uint64_t total, double seconds,
                          int columns, uint64_t kept = 0);

/// In front of the bar for all: "file 2/5 34 %, all", with the file's name on a wide terminal.
std::string file_label(const std::string& file, int number, int num_files, uint64_t done,
                       uint64_t total, int columns);

class ProgressBar {
 public:
  ProgressBar();
  /// Erases the line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Redraws at most ten times a second, and always when done. The first call tells what was there
  /// before.
  void update(const std::string& label, uint64_t done_bytes, uint64_t total_bytes);
  /// The same for work that is not counted in bytes. `share` below 0: unknown, there is no bar.
  void update_share(const std::string& label, double share,
                    const std::vector<std::string>& details);
  /// Erases the line, for a message.
  void clear();

 private:
  bool is_due(bool is_finished);
  void draw(const std::string& line);

  bool enabled_;
  bool drawn_ = false;
  std::optional<uint64_t> kept_bytes_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace headrace::cli
