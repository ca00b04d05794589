// Sessions of an engine on the checksum model: what comes back is what was computed, a file that is
// wrong changes nothing, and others are not disturbed.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/session/session_file.h"
#include "engine/test_engine.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int64_t num_cached(const Fixture& fixture) {
  int64_t sum = 0;
  for (const CacheGroup& group : fixture.scheduler().cache().groups()) sum += group.num_cached();
  return sum;
}

/// A prompt and what the model says to it.
std::vector<TokenId> conversation(const Request& request) {
  std::vector<TokenId> tokens = request.prompt;
  const auto said = expected(request, 200).tokens;
  tokens.insert(tokens.end(), said.begin(), said.end());
  return tokens;
}

class EngineSessions : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  static Outcome run(Fixture& fixture, const Request& request) {
    Stream stream = fixture.submit(request);
    fixture.run_until_idle();
    return read(stream);
  }

  /// Of a conversation that an engine of its own held; returns its tokens.
  std::vector<TokenId> write_session(const Request& request, const std::string& note = "") {
    Fixture fixture(small_options());
    expect_same(run(fixture, request), expected(request, 200));
    const auto tokens = conversation(request);
    const auto saved = fixture.engine->save_session(tokens, request.cache_scope, path_, note);
    EXPECT_TRUE(saved.ok()) << saved.error().to_string();
    EXPECT_EQ(*saved, static_cast<int64_t>(tokens.size()) - 1);  // the last was not computed
    return {tokens.begin(), tokens.begin() + *saved};
  }

  static Error load_error(Fixture& fixture, const std::string& path) {
    auto loaded = fixture.engine->load_session(path, "");
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? Error{} : loaded.error();
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "headrace_engine_sessions";
  const std::string path_ = (folder_ / "talk").string();
};

TEST_F(EngineSessions, WhatComesBackIsWhatWasComputed) {
  for (const int64_t num_generated : {1, 12, 40, 100}) {
    const Request request = request_of(prompt_of(37, 5), num_generated, 3);
    const auto tokens = write_session(request, "a note");
    Fixture fixture(small_options());
    const auto loaded = fixture.engine->load_session(path_, "");
    ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
    EXPECT_EQ(loaded->tokens, tokens);
    EXPECT_EQ(loaded->note, "a note");
    fixture.scheduler().check_invariants();
    fixture.expect_all_blocks_free();

    auto longer = tokens;
    for (int i = 0; i < 20; ++i) longer.push_back(100 + i);
    const Request next = request_of(longer, 20, 9);
    const Outcome outcome = run(fixture, next);
    expect_same(outcome, expected(next, 200));
    EXPECT_EQ(outcome.finish->stats.cached_tokens, static_cast<int64_t>(tokens.size()));
    EXPECT_EQ(fixture.runner->num_rows(), 20 + 20 - 1);
  }
}

// As a program does that is called with one prompt again and again, and with one that goes on
// differently. A token of the prompt is always computed, for its logits.
TEST_F(EngineSessions, APromptThatPartsEarlier) {
  const Request request = request_of(prompt_of(80, 5), 16, 3);
  const auto tokens = write_session(request);
  Fixture fixture(small_options());
  ASSERT_TRUE(fixture.engine->load_session(path_, "").ok());
  Request other = request;
  other.prompt[75] = 777;
  const Outcome parted = run(fixture, other);
  expect_same(parted, expected(other, 200));
  EXPECT_EQ(parted.finish->stats.cached_tokens, 75);
  const Outcome again = run(fixture, request);
  expect_same(again, expected(request, 200));
  EXPECT_EQ(again.finish->stats.cached_tokens, 79);
}

TEST_F(EngineSessions, SavedAndLoadedTwice) {
  const Request request = request_of(prompt_of(50, 5), 30, 3);
  const auto tokens = write_session(request, "note");
  const std::string first = content(path_);
  Fixture fixture(small_options());
  for (int i = 0; i < 2; ++i) {
    const auto loaded = fixture.engine->load_session(path_, "");
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->tokens, tokens);
    EXPECT_EQ(num_cached(fixture), 5 + 5);
    const auto saved = fixture.engine->save_session(tokens, "", path_, "note");
    ASSERT_TRUE(saved.ok()) << saved.error().to_string();
    EXPECT_EQ(*saved, static_cast<int64_t>(tokens.size()));
    EXPECT_EQ(content(path_), first);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(EngineSessions, ScopesAreKeptApart) {
  Request request = request_of(prompt_of(50, 5), 30, 3);
  request.cache_scope = "mine";
  const auto tokens = write_session(request);
  Fixture fixture(small_options());
  EXPECT_EQ(*fixture.engine->save_session(tokens, "mine", (folder_ / "none").string(), ""), 0);
  ASSERT_TRUE(fixture.engine->load_session(path_, "mine").ok());
  EXPECT_EQ(*fixture.engine->save_session(tokens, "yours", (folder_ / "none").string(), ""), 0);
  for (const char* scope : {"yours", "mine"}) {
    Request next = request_of(tokens, 5, 4);
    next.cache_scope = scope;
    EXPECT_EQ(run(fixture, next).finish->stats.cached_tokens > 0, next.cache_scope == "mine");
  }
}

TEST_F(EngineSessions, NothingIsASessionToo) {
  Fixture fixture(small_options());
  const auto saved = fixture.engine->save_session(prompt_of(50, 5), "", path_, "words alone");
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(*saved, 0);
  const auto loaded = fixture.engine->load_session(path_, "");
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_TRUE(loaded->tokens.empty());
  EXPECT_EQ(loaded->note, "words alone");
}

TEST_F(EngineSessions, ADamagedFileChangesNothing) {
  write_session(request_of(prompt_of(21, 5), 5, 3));
  const std::string right = content(path_);
  const std::string wrong_path = (folder_ / "wrong").string();
  Fixture fixture(small_options());
  const Request other = request_of(prompt_of(50, 300), 10, 3);
  run(fixture, other);
  const int64_t cached = num_cached(fixture);
  const auto expect_refused = [&](const std::string& wrong, const std::string& what) {
    std::ofstream(wrong_path, std::ios::binary | std::ios::trunc) << wrong;
    const Error error = load_error(fixture, wrong_path);
    ASSERT_NE(error.where.find(wrong_path), std::string::npos) << what;
    ASSERT_FALSE(error.message.empty()) << what;
    ASSERT_EQ(num_cached(fixture), cached) << what;
  };
  for (size_t size = 0; size < right.size(); ++size) {
    expect_refused(right.substr(0, size), "cut after " + std::to_string(size));
  }
  for (size_t at = 0; at < right.size(); ++at) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ (1 << at % 8));
    expect_refused(wrong, "byte " + std::to_string(at));
  }
  fixture.scheduler().check_invariants();
  fixture.expect_all_blocks_free();
  EXPECT_EQ(run(fixture, other).finish->stats.cached_tokens, 49);
  EXPECT_TRUE(fixture.engine->load_session(path_, "").ok());
}

TEST_F(EngineSessions, OfAnotherModelOrCacheIsRefused) {
  write_session(request_of(prompt_of(50, 5), 10, 3));
  const auto refused = [&](auto change) {
    EngineOptions options = small_options();
    change(options);
    std::vector<CacheGeometry> geometries{{.block_tokens = options.block_tokens, .window = 0},
                                          {.block_tokens = options.block_tokens, .window = 20}};
    Fixture fixture(options, geometries);
    const Error error = load_error(fixture, path_);
    EXPECT_EQ(error.code, ErrorCode::mismatch);
    EXPECT_EQ(error.where, path_);
    EXPECT_EQ(num_cached(fixture), 0);
    return error.message;
  };
  EXPECT_NE(refused([](EngineOptions& options) {
              options.model_fingerprint = "x";
            }).find("another model"),
            std::string::npos);
  EXPECT_NE(refused([](EngineOptions& options) {
              options.tokenizer_fingerprint = "x";
            }).find("another tokenizer"),
            std::string::npos);
  EXPECT_NE(refused([](EngineOptions& options) { options.kv_type = KvType::q8; }).find("KV type"),
            std::string::npos);
  EXPECT_NE(refused([](EngineOptions& options) { options.block_tokens = 32; }).find("32"),
            std::string::npos);
  Fixture other_window(small_options(),
                       {{.block_tokens = 16, .window = 0}, {.block_tokens = 16, .window = 21}});
  EXPECT_EQ(load_error(other_window, path_).code, ErrorCode::mismatch);
}

TEST_F(EngineSessions, ATokenThatTheModelDoesNotHaveIsRefused) {
  write_session(request_of(prompt_of(50, 5), 10, 3));
  const std::string bytes = content(path_);
  auto file = read_session(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok());
  file->header.tokens[3] = kVocab;
  auto writer = SessionWriter::create(path_);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->begin(file->header).ok());
  for (const auto blocks : file->blocks) ASSERT_TRUE(writer->add_block(blocks).ok());
  ASSERT_TRUE(writer->finish().ok());
  Fixture fixture(small_options());
  EXPECT_NE(load_error(fixture, path_).message.find("token id 1000"), std::string::npos);
}

TEST_F(EngineSessions, WithoutRoomNothingChanges) {
  const auto tokens = write_session(request_of(prompt_of(120, 5), 30, 3));
  EngineOptions options = small_options();
  options.context = options.kv_tokens = 100;
  options.max_sequences = 2;
  Fixture small(options);
  const Error error = load_error(small, path_);
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted);
  EXPECT_NE(error.hint.find("-c"), std::string::npos);
  EXPECT_EQ(num_cached(small), 0);

  // Blocks that others hold now.
  options.context = options.kv_tokens = 200;
  Fixture fixture(options);
  const Request running = request_of(prompt_of(60, 300), 60, 3);
  Stream stream = fixture.submit(running);
  for (int i = 0; i < 20; ++i) fixture.engine->step(false);
  const int64_t cached = num_cached(fixture);
  const Error busy = load_error(fixture, path_);
  EXPECT_EQ(busy.code, ErrorCode::resource_exhausted);
  EXPECT_NE(busy.hint.find("later"), std::string::npos);
  EXPECT_EQ(num_cached(fixture), cached);
  fixture.scheduler().check_invariants();
  fixture.run_until_idle();
  expect_same(read(stream), expected(running, 200));
  // It has ended: its prefix makes room.
  ASSERT_TRUE(fixture.engine->load_session(path_, "").ok());
  const Request next = request_of(tokens, 10, 4);
  const Outcome outcome = run(fixture, next);
  expect_same(outcome, expected(next, 200));
  EXPECT_EQ(outcome.finish->stats.cached_tokens, static_cast<int64_t>(tokens.size()) - 1);
}

TEST_F(EngineSessions, CallsThatCannotBe) {
  EngineOptions options = small_options();
  options.prefix_cache = false;
  Fixture without(options);
  EXPECT_EQ(load_error(without, path_).code, ErrorCode::unsupported);
  EXPECT_EQ(without.engine->save_session(prompt_of(5, 5), "", path_, "").error().code,
            ErrorCode::unsupported);
  Fixture fixture(small_options());
  EXPECT_EQ(load_error(fixture, path_).code, ErrorCode::not_found);
  EXPECT_EQ(load_error(fixture, folder_.string()).code, ErrorCode::io_error);
  const std::string long_note(kMaxSessionNoteBytes + 1, 'x');
  EXPECT_EQ(fixture.engine->save_session({}, "", path_, long_note).error().where, "note");
  EXPECT_EQ(fixture.engine->save_session({}, "", "/no/such/folder/x", "").error().code,
            ErrorCode::io_error);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(EngineSessions, EventsTellOfWhatIsLoaded) {
  write_session(request_of(prompt_of(50, 5), 30, 3));
  EngineOptions options = small_options();
  options.kv_events = true;
  Fixture fixture(options);
  ASSERT_TRUE(fixture.engine->load_session(path_, "").ok());
  int num_stored = 0;
  for (const KvEvent& event : fixture.engine->take_kv_events()) {
    num_stored += event.kind == KvEvent::Kind::stored ? 1 : 0;
  }
  EXPECT_EQ(num_stored, 4 + 4);  // the begun blocks have no events
}

TEST_F(EngineSessions, UnderLoad) {
  const Request request = request_of(prompt_of(50, 5), 30, 3);
  const auto tokens = write_session(request, "note");
  Fixture fixture(small_options());
  Engine& engine = *fixture.engine;
  fixture.engine->start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const Request mine = request_of(prompt_of(20 + static_cast<size_t>(round), i), 20, 9);
        Stream stream = fixture.submit(mine);
        expect_same(read(stream), expected(mine, 200));
      }
    });
    threads.emplace_back([&, i] {
      const std::string own = path_ + std::to_string(i);
      for (int round = 0; round < 20; ++round) {
        const auto loaded = engine.load_session(path_, "");
        // Four run at once, and may hold what it needs.
        if (!loaded.ok()) {
          EXPECT_EQ(loaded.error().code, ErrorCode::resource_exhausted);
          continue;
        }
        EXPECT_EQ(loaded->tokens, tokens);
        const Request next = request_of(tokens, 5, static_cast<uint64_t>(round));
        Stream stream = fixture.submit(next);
        expect_same(read(stream), expected(next, 200));
        const auto saved = engine.save_session(tokens, "", own, "note");
        EXPECT_TRUE(saved.ok()) << saved.error().to_string();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  fixture.engine.reset();
}

TEST(InboxTasks, RunBetweenStepsOrAreDropped) {
  StepClock clock;
  Scheduler scheduler(SchedulerOptions(), {}, {}, clock);
  Inbox inbox;
  int num_run = 0;
  const auto post = [&](auto work) {
    std::packaged_task<void()> task(work);
    auto future = task.get_future();
    inbox.post(std::move(task));
    return future;
  };
  auto counted = post([&] { ++num_run; });
  auto throwing = post([] { throw std::bad_alloc(); });
  auto after = post([&] { ++num_run; });
  EXPECT_TRUE(inbox.drain(scheduler, clock, true));
  EXPECT_EQ(num_run, 2);
  EXPECT_NO_THROW(counted.get());
  EXPECT_THROW(throwing.get(), std::bad_alloc);
  EXPECT_NO_THROW(after.get());
  auto dropped = post([&] { ++num_run; });
  inbox.stop();
  auto late = post([&] { ++num_run; });
  EXPECT_THROW(late.get(), std::future_error);
  EXPECT_FALSE(inbox.drain(scheduler, clock, true));
  EXPECT_THROW(dropped.get(), std::future_error);
  EXPECT_EQ(num_run, 2);
}

}  // namespace
}  // namespace headrace
