// Where the results of a benchmark go, and what is shown while it runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

struct BenchOutputArgs {
  std::string formats = "md";
  std::string file;
  bool json = false;

  /// Then a failure is JSON on standard output too.
  bool wants_json() const { return json || (formats == "json" && file.empty()); }
};

/// -o, --output-file and --json.
std::vector<Option> bench_output_options(BenchOutputArgs& args);

/// Before anything is measured. Errors: unsupported (a page, in a build without Chart.js);
/// invalid_argument (--output-file is the name of a folder); io_error (no file can be written
/// there). Files are tried out, and left as they were.
Result<void> check_output(const BenchOutputArgs& args);

/// Prints the results in each format, or writes their files. `rendered`: "md", "json", "csv",
/// "html" to text. Errors: io_error; what no file could be written of is printed then.
Result<void> write_output(const BenchOutputArgs& args,
                          const std::function<std::string(const std::string& format)>& rendered);

/// One line on standard error, on a terminal only.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);

 private:
  const bool enabled_;
  bool drawn_ = false;
};

}  // namespace headrace::cli
