#include "store/model_store.h"

#include <fstream>
#include <set>

#include "store/sha256.h"
#include "store/store_fixture.h"

namespace headrace {
namespace {

TEST(Catalog, EntriesAreComplete) {
  std::set<std::string> names;
  for (const auto& entry : ModelStore::catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(entry.sha256.size(), 64u);
    const bool is_file = entry.format == ModelFormat::gguf;
    EXPECT_EQ(entry.file_name, entry.name + (is_file ? ".gguf" : ""));
    EXPECT_EQ(is_file, !entry.quantization.empty());
    EXPECT_GT(entry.size_bytes, 0u);
    EXPECT_FALSE(entry.license.empty());
    EXPECT_FALSE(entry.parts.empty());
    for (const auto& part : entry.parts) {
      EXPECT_FALSE(part.version.empty());
      EXPECT_GT(part.download_bytes, 0u);
    }
  }
  EXPECT_EQ(ModelStore::default_model().name, "smollm2-135m");
}

TEST(Sha256, KnownValues) {
  EXPECT_EQ(Sha256().finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  const std::string abc = "abc";
  hash.update(std::as_bytes(std::span(abc.data(), 1)));
  hash.update(std::as_bytes(std::span(abc.data() + 1, 2)));
  EXPECT_EQ(hash.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ModelStoreFolder, FollowsTheEnvironment) {
  ScopedEnvironment environment;
  environment.set("HEADRACE_HOME", "/a");
  environment.set("XDG_DATA_HOME", "/b");
  environment.set("HOME", "/c");
  EXPECT_EQ(ModelStore::open()->root(), "/a/models");
  environment.set("HEADRACE_HOME", std::nullopt);
  EXPECT_EQ(ModelStore::open()->root(), "/b/headrace/models");
  environment.set("XDG_DATA_HOME", "");
  EXPECT_EQ(ModelStore::open()->root(), "/c/.local/share/headrace/models");
  environment.set("HOME", std::nullopt);
  EXPECT_EQ(ModelStore::open().error().code, ErrorCode::not_found);
  EXPECT_EQ(ModelStore::open("/d")->root(), "/d");
}

TEST_F(StoreTest, ListsAndFindsTheFilesThatAreModels) {
  const ModelStore store = store_of({});
  EXPECT_TRUE(store.list().empty());
  std::filesystem::create_directories(root() / "folder.gguf");
  std::ofstream(root() / "b.gguf") << "12345";
  std::ofstream(root() / "a.gguf") << "1";
  std::ofstream(root() / ".hidden.gguf") << "1";
  std::ofstream(root() / ".gguf") << "1";
  std::ofstream(root() / "notes.txt") << "1";
  const auto models = store.list();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[1].name, "b");
  EXPECT_EQ(models[1].size_bytes, 5u);
  EXPECT_EQ(models[1].path, (root() / "b.gguf").string());
  EXPECT_TRUE(store.find("b").has_value());
  EXPECT_FALSE(store.find("../models/b").has_value());
  EXPECT_FALSE(store.find("").has_value());
}

TEST_F(StoreTest, RemovesWhatItHasOnly) {
  const ModelStore store = store_of({});
  std::filesystem::create_directories(root());
  std::ofstream(root() / "model.gguf") << "1";
  const auto missing = store.remove("modle");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(missing.error().hint.find("model"), std::string::npos);
  EXPECT_TRUE(store.remove("model").ok());
  EXPECT_TRUE(store.list().empty());
  EXPECT_FALSE(store.remove("model").ok());
}

}  // namespace
}  // namespace headrace
