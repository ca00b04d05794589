// See bench_output.h.
#include "cli/bench/bench_output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/os/terminal.h"
#include "cli/bench/bench_page.h"
#include "cli/bench/bench_setting.h"
#include "cli/make_option.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> formats_of(const BenchOutputArgs& args) {
  return args.json ? std::vector<std::string>{"json"} : parts_once(args.formats);
}

/// Opens it to write behind what is there, which changes nothing. Errors: io_error.
Result<void> check_file(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    return Error{ErrorCode::io_error, "a directory is in the way of the file", path,
                 "give another name"};
  }
  const bool is_there = fs::exists(path, failed);
  errno = 0;
  if (std::ofstream(path, std::ios::binary | std::ios::app)) {
    if (!is_there) fs::remove(path, failed);
    return {};
  }
  return Error{ErrorCode::io_error, std::string("cannot be written: ") + std::strerror(errno), path,
               "check its folder and rights"};
}

Result<void> write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (out) return {};
  return Error{ErrorCode::io_error, std::string("cannot be written: ") + std::strerror(errno), path,
               "the results are printed instead"};
}

}  // namespace

std::vector<Option> bench_output_options(BenchOutputArgs& args) {
  std::vector<Option> options;
  options.push_back(make_option("-o,--output", "FORMAT[,FORMAT...]",
                                "How results are written; html is one page with plots",
                                &args.formats, "md"));
  options.back().choices = {"md", "json", "csv", "html"};
  options.back().is_list = true;
  options.push_back(path_option("--output-file", "NAME",
                                "Write NAME.md, NAME.json and so on instead of standard output",
                                &args.file));
  options.push_back(json_option(&args.json));
  for (Option& option : options) option.group = "Output";
  return options;
}

Result<void> check_output(const BenchOutputArgs& args) {
  const auto formats = formats_of(args);
  const bool wants_page = std::find(formats.begin(), formats.end(), "html") != formats.end();
  if (wants_page && !kBenchPageHasChart) {
    return Error{ErrorCode::unsupported, "this build of Headrace has no Chart.js for the page",
                 "-o html", "install Debian's libjs-chart.js and build again"};
  }
  if (args.file.empty()) return {};
  const std::string name = fs::path(args.file).filename().string();
  if (name.empty() || name == "." || name == "..") {
    return Error{
        ErrorCode::invalid_argument,
        "'" + args.file + "' names a folder, not the beginning of files' names", "--output-file",
        "name files in it, as in --output-file " + (fs::path(args.file) / "bench").string()};
  }
  for (const std::string& format : formats) HEADRACE_TRY(check_file(args.file + "." + format));
  return {};
}

Result<void> write_output(const BenchOutputArgs& args,
                          const std::function<std::string(const std::string& format)>& rendered) {
  Result<void> outcome;
  for (const std::string& format : formats_of(args)) {
    const std::string text = rendered(format);
    if (args.file.empty()) {
      print(text);
      continue;
    }
    const std::string path = args.file + "." + format;
    if (auto written = write_file(path, text); !written.ok()) {
      print(text);  // it took long to measure
      outcome = std::move(written);
      continue;
    }
    std::fprintf(stderr, "%s\n", printable(path).c_str());
  }
  return outcome;
}

ProgressLine::ProgressLine() : enabled_(is_terminal(StandardStream::error)) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(const std::string& text) {
  if (!enabled_) return;
  const int columns = terminal_columns(StandardStream::error, 80);
  std::fprintf(stderr, "\r\x1b[K%s", printable(text, static_cast<size_t>(columns) - 1).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace headrace::cli
