// See store_fixture.h.
#include "store/store_fixture.h"

#include <zip.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "store/sha256.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void add(zip_t* archive, const std::string& name, const std::string& text) {
  zip_source_t* source = zip_source_buffer(archive, text.data(), text.size(), 0);
  ASSERT_NE(source, nullptr);
  ASSERT_GE(zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8), 0);
}

}  // namespace

ScopedEnvironment::~ScopedEnvironment() {
  for (const auto& [name, value] : before_) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
}

void ScopedEnvironment::set(const std::string& name, const std::optional<std::string>& value) {
  const char* old = std::getenv(name.c_str());
  before_.try_emplace(name, old != nullptr ? std::optional<std::string>(old) : std::nullopt);
  if (value) {
    ::setenv(name.c_str(), value->c_str(), 1);
  } else {
    ::unsetenv(name.c_str());
  }
}

void StoreTest::SetUp() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  folder_ = fs::path(::testing::TempDir()) / ("headrace_store_" + std::string(test->name()));
  fs::remove_all(folder_);
  fs::create_directories(folder_ / "wheels");
  environment_.set("PIP_FIND_LINKS", (folder_ / "wheels").string());
  environment_.set("PIP_NO_INDEX", "1");
  environment_.set("PIP_CONFIG_FILE", "/dev/null");
  environment_.set("PIP_RETRIES", "0");
}

void StoreTest::TearDown() {
  if (!HasFailure()) fs::remove_all(folder_);
}

void StoreTest::make_wheel(const std::string& name,
                           const std::vector<std::pair<std::string, std::string>>& files) {
  std::string module = name;
  std::replace(module.begin(), module.end(), '-', '_');
  const std::string info = module + "-1.0.dist-info/";
  const fs::path wheel = folder_ / "wheels" / (module + "-1.0-py3-none-any.whl");
  // libzip reads the texts when it closes the archive.
  const std::string metadata = "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n";
  const std::string tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
  const std::string record;
  int code = 0;
  zip_t* archive = zip_open(wheel.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  EXPECT_NE(archive, nullptr) << code;
  for (const auto& [path, text] : files) add(archive, path, text);
  add(archive, info + "METADATA", metadata);
  add(archive, info + "WHEEL", tags);
  add(archive, info + "RECORD", record);
  EXPECT_EQ(zip_close(archive), 0);
}

PackagePart StoreTest::make_package(const std::string& name, const std::string& content) {
  std::string module = name;
  std::replace(module.begin(), module.end(), '-', '_');
  make_wheel(name, {{module + "/data/part.bin", content}});
  const fs::path wheel = folder_ / "wheels" / (module + "-1.0-py3-none-any.whl");
  return {name, "1.0", module + "/data/part.bin", fs::file_size(wheel)};
}

CatalogEntry StoreTest::make_entry(const std::string& name,
                                   const std::vector<std::string>& contents) {
  CatalogEntry entry;
  entry.name = name;
  entry.description = "made by a test";
  entry.license = "CC0-1.0";
  entry.file_name = name + ".gguf";
  Sha256 hash;
  for (size_t i = 0; i < contents.size(); ++i) {
    entry.parts.push_back(make_package("headrace-test-" + name + std::to_string(i), contents[i]));
    entry.size_bytes += contents[i].size();
    hash.update(bytes_of(contents[i]));
  }
  entry.sha256 = hash.finish();
  return entry;
}

ModelStore StoreTest::store_of(std::vector<CatalogEntry> entries) const {
  return ModelStore::open(root().string(), std::move(entries)).value();
}

void StoreTest::replace_python(const std::string& script) {
  const fs::path bin = folder_ / "bin";
  fs::create_directories(bin);
  const char* path = std::getenv("PATH");
  environment_.set("PATH", bin.string() + ":" + (path != nullptr ? path : ""));
  std::ofstream(bin / "python3") << "#!/bin/sh\n" << script;
  fs::permissions(bin / "python3", fs::perms::all);
}

void StoreTest::use_stub_pip() {
  environment_.set("STUB_WHEELS", (folder_ / "wheels").string());
  replace_python(kStubPip);
}

std::vector<std::string> StoreTest::leftovers() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(root(), error)) {
    const std::string name = fs::relative(entry.path(), root()).string();
    if (name != ".pull" && entry.path().extension() != ".lock") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace headrace
