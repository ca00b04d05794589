// Where the reference data lies: $HEADRACE_CONFORMANCE, else ../shared/conformance beside the
// source tree. Tests that need it skip themselves, saying so, where it is absent.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::conformance {

/// The folder `name` of the reference data, or an empty path.
inline std::filesystem::path folder(const std::string& name) {
  const char* set = std::getenv("HEADRACE_CONFORMANCE");
  const std::filesystem::path root =
      set != nullptr ? std::filesystem::path(set)
                     : std::filesystem::path(HEADRACE_SOURCE_DIR) / ".." / "shared" / "conformance";
  std::error_code error;
  const auto path = root / name;
  return std::filesystem::is_directory(path, error) ? path : std::filesystem::path();
}

/// The files of a folder with this extension (".json"), sorted; prints how many there are.
inline std::vector<std::filesystem::path> files(const std::string& name,
                                                std::string_view extension) {
  std::vector<std::filesystem::path> found;
  const auto path = folder(name);
  if (path.empty()) return found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  std::cout << "conformance/" << name << ": " << found.size() << " files\n";
  return found;
}

}  // namespace headrace::conformance
