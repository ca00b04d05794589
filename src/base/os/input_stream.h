// Reading a file or standard input from front to back, pipes and devices too. Unlike the streams of
// the C++ library it tells a failed read from the end. Must not know what is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

class InputStream {
 public:
  /// The process' own; stays open when the object dies. One object at a time may read lines: what
  /// it has read ahead is lost with it.
  static InputStream standard_input();
  /// Errors: not_found, io_error (a directory, no permission).
  static Result<InputStream> open(const std::string& path);

  InputStream(InputStream&& other) noexcept;
  InputStream& operator=(InputStream&&) = delete;
  ~InputStream();

  /// Waits for bytes; how many came, 0 at the end. Errors: io_error, with the system's reason;
  /// cancelled, where an InterruptGuard caught a signal.
  Result<size_t> read(std::span<char> buffer);

  /// The next line without its line end ("\n", "\r\n"); the last one need not have any. False at
  /// the end. Errors: those of read(); resource_exhausted (a line over 1 GiB).
  Result<bool> read_line(std::string& line);

  enum class Line : uint8_t {
    whole,     ///< as far as its line end
    unended,   ///< the last one, without a line end
    too_long,  ///< no more than `max_bytes` of it were kept
    none,      ///< the end
  };
  /// The same where a long line is no error: the rest of it is skipped, in bounded memory. Errors:
  /// those of read().
  Result<Line> read_line(std::string& line, size_t max_bytes);

  /// Of all lines given out so far, with their line ends.
  uint64_t line_bytes() const { return line_bytes_; }

  /// "standard input", or the path.
  const std::string& name() const { return name_; }

 private:
  InputStream(int fd, bool owned, std::string name)
      : fd_(fd), is_owned_(owned), name_(std::move(name)) {}

  /// Adds what was read ahead to `line`, as far as the line end; false where there is none.
  bool take_ahead(std::string& line, size_t max_bytes);
  /// Errors: those of read(). False at the end.
  Result<bool> fill_ahead();

  int fd_;
  bool is_owned_;
  std::string name_;
  std::string ahead_;  ///< read, not yet given out from `next_` on
  size_t next_ = 0;
  uint64_t line_bytes_ = 0;
};

/// All of a file that may have no more than `max_bytes`. Errors: those of open() and read();
/// out_of_range (it has more).
Result<std::string> read_small_file(const std::string& path, size_t max_bytes);

/// Puts a stand-in on each of the descriptors 0, 1 and 2 that is closed, so that no file opened
/// later takes its place: using it is then an error. For the beginning of main.
void fill_standard_descriptors();

}  // namespace headrace
