// One file from an address to the disk: resumed where an earlier try ended, tried again where a
// connection is cut, checked when whole. Must not know hubs or models.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headrace/result.h"
#include "store/http_retry.h"

namespace headrace {

struct FileDownload {
  std::string url;
  std::string token;        ///< for this host alone; may be empty
  std::string name;         ///< in messages, and of its ending what it must look like
  uint64_t size_bytes = 0;  ///< expected; 0: unknown
  std::string sha256;       ///< expected, lower case; may be empty
  std::string blob_id;      ///< expected, git's sha1 of a blob; may be empty
  /// The unfinished file's name comes from the content, so that it goes on without asking whether
  /// the file has changed. Else a note beside it has the ETag, and it goes on only where that still
  /// holds.
  bool is_named_by_content = false;
  int stall_seconds = 30;
  HttpPeer peer;
};

struct DownloadHooks {
  /// Before the first byte of an answer. An error ends the download.
  std::function<Result<void>(uint64_t done_bytes, uint64_t total_bytes)> begin;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;  ///< total 0: unknown
  std::function<void(const std::string&)> note;  ///< a try failed, another follows
  std::function<bool()> keep_going;
};

struct DownloadedFile {
  uint64_t size_bytes = 0;
  std::string sha256;
};

/// Brings the whole file into `partial` ("x.incomplete"), where what an earlier call left is gone
/// on from. The file is durable when this returns; giving it its name is the caller's. What came
/// stays for the next call, unless it is wrong. Errors: corrupt_data (size, checksum, a web page or
/// pointer instead of the file), resource_exhausted (disk), cancelled, those of http_error.
Result<DownloadedFile> download_file(const FileDownload& file, const std::string& partial,
                                     const DownloadHooks& hooks);

/// Bytes of an earlier try that `download_file` may go on from.
uint64_t partial_bytes(const std::string& partial);
/// Removes an unfinished file and its note.
void remove_partial(const std::string& partial);

}  // namespace headrace
