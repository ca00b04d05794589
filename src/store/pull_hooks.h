// What a pull tells while it runs, and what may be asked of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headrace/result.h"

namespace headrace {

struct PullProgress {
  std::string stage;  ///< "waiting for another pull", "downloading"
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;  ///< 0: unknown
  std::string file = {};     ///< the one under way; may be empty
  int file_number = 0;       ///< from 1, of num_files
  int num_files = 0;
  uint64_t file_done_bytes = 0;
  uint64_t file_total_bytes = 0;
};

/// What a pull is about to download.
struct PullPlan {
  std::string name;
  std::string description;      ///< may be empty
  uint64_t download_bytes = 0;  ///< 0: unknown
  uint64_t kept_bytes = 0;      ///< of these, what an earlier pull left
  std::string license;          ///< may be empty
  std::string license_note;     ///< may be empty
};

struct PullHooks {
  std::function<void(const PullProgress&)> progress;
  std::function<bool()> keep_going;               ///< asked about ten times a second
  std::function<void(const PullPlan&)> announce;  ///< once, where something is downloaded
  std::function<void(const std::string&)> note;   ///< it waits, or tries again
};

struct PullOptions {
  std::string name;    ///< instead of the model's own; may be empty
  std::string sha256;  ///< of the model's only file; may be empty
  /// Bytes free at a path; empty: the file system is asked.
  std::function<Result<uint64_t>(const std::string&)> free_bytes;
};

struct PulledModel {
  std::string name;
  std::string path;
  bool was_there = false;  ///< nothing was downloaded
};

/// That `needed_bytes` fit on the disk of `folder`, and some to spare. Errors: resource_exhausted,
/// with both numbers; io_error. `variable` names what moves the folder elsewhere.
Result<void> check_disk_room(const std::string& folder, uint64_t needed_bytes,
                             const PullOptions& options, const std::string& variable);

}  // namespace headrace
