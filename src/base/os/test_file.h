// For the tests of this folder: a file with given bytes.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace headrace::test {

/// Writes a file among the temporary ones. Returns its path.
inline std::string write_file(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace headrace::test
