// The engine where memory runs out: every allocation of a run fails once in turn. Nobody may wait
// forever, nothing may terminate, and the engine must serve the next request. Replaces operator new
// of this program, so it is one of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine_impl.h"
#include "engine/simulation/checksum_runner.h"
#include "tests/replaced_new.h"

namespace {

/// Allocations until one fails; below 0: none does.
thread_local int allocations_left = -1;
/// Of all allocations.
thread_local size_t allocated_bytes = 0;

}  // namespace

void* allocate_for_test(size_t size, size_t alignment) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  allocated_bytes += size;
  return allocate_plainly(size, alignment);
}

namespace headrace {
namespace {

class StillClock final : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  int64_t unix_seconds() const override { return 0; }
};

class NoRandom final : public RandomSource {
 public:
  uint64_t next_u64() override { return 1; }
};

std::unique_ptr<EngineImpl> engine_with(const EngineOptions& options) {
  const std::vector<CacheGeometry> geometries{{.block_tokens = 16, .window = 0}};
  const auto num_blocks = engine_blocks(options, geometries);
  ModelInfo info;
  info.vocab_size = 1000;
  EngineParts parts;
  parts.runner = std::make_unique<ChecksumRunner>(info, geometries, num_blocks);
  parts.clock = std::make_shared<StillClock>();
  parts.random = std::make_shared<NoRandom>();
  return std::make_unique<EngineImpl>(std::move(parts), options, geometries, num_blocks);
}

std::unique_ptr<EngineImpl> small_engine(bool kv_events = true) {
  return engine_with({.context = 100,
                      .chunk_tokens = 8,
                      .max_sequences = 2,
                      .kv_tokens = 200,
                      .kv_events = kv_events});
}

/// More than a block.
std::vector<TokenId> prompt_of(TokenId first) {
  std::vector<TokenId> prompt{first, 2, 3};
  prompt.resize(20, first);
  return prompt;
}

Stream submit(EngineImpl& engine, TokenId first, int64_t max_tokens, int32_t num_choices = 1) {
  Request request;
  request.prompt = prompt_of(first);
  request.num_choices = num_choices;
  request.num_prompt_logprobs = num_choices > 1 ? 0 : -1;
  request.stop.max_tokens = max_tokens;
  request.sampling.seed = 5;
  request.keeps_timeline = true;
  auto stream = engine.submit(request);
  EXPECT_TRUE(stream.ok());
  return std::move(stream).value();
}

/// Reads a stream to its end; false if it ended without saying how.
bool ends_well(Stream& stream, int num_choices = 1) {
  int num_finished = 0;
  bool has_failed = false;
  while (const auto event = stream.next()) {
    EXPECT_FALSE(has_failed || num_finished == num_choices) << "an event after the last";
    if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
      EXPECT_EQ(error->error.code, ErrorCode::resource_exhausted);
      has_failed = true;
    }
    num_finished += std::holds_alternative<FinishEvent>(*event) ? 1 : 0;
  }
  return has_failed || num_finished == num_choices;
}

TEST(EngineWithoutMemory, EveryAllocationMayFail) {
  int num_failed = 0;
  for (bool has_failed = true; has_failed; ++num_failed) {
    ASSERT_LT(num_failed, 10000);
    const auto engine = small_engine();
    Stream first = submit(*engine, 10, 20);
    Stream several = submit(*engine, 10, 5, 3);
    Stream waiting = submit(*engine, 11, 20);
    Stream third = submit(*engine, 12, 3);
    Stream cancelled = submit(*engine, 13, 20);
    cancelled.cancel();
    allocations_left = num_failed;
    for (int i = 0; i < 300; ++i) engine->step(false);
    has_failed = std::exchange(allocations_left, -1) < 0;
    ASSERT_TRUE(engine->scheduler().is_idle()) << "after failure " << num_failed;
    engine->scheduler().check_invariants();
    for (Stream* stream : {&first, &waiting, &third, &cancelled}) {
      EXPECT_TRUE(ends_well(*stream)) << "after failure " << num_failed;
    }
    EXPECT_TRUE(ends_well(several, 3)) << "after failure " << num_failed;
    Stream next = submit(*engine, 14, 3);
    for (int i = 0; i < 10; ++i) engine->step(false);
    int num_tokens = 0;
    while (const auto event = next.next()) {
      num_tokens += std::holds_alternative<TokenEvent>(*event) ? 1 : 0;
    }
    EXPECT_EQ(num_tokens, 3) << "after failure " << num_failed;
  }
  EXPECT_GT(num_failed, 50);
}

// Who drops a stream, moves another one into it or cancels needs no memory.
TEST(EngineWithoutMemory, CancellingNeedsNone) {
  const auto engine = small_engine();
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 40; ++i) streams.push_back(submit(*engine, 10 + i, 50, 2));
  Stream replaced = submit(*engine, 60, 50);
  Stream other = submit(*engine, 61, 50);
  engine->step(false);
  Stream cancelled = submit(*engine, 62, 50, 3);
  allocations_left = 0;
  streams.clear();
  cancelled.cancel(1);
  cancelled.cancel(1);
  cancelled.cancel(kMaxChoices);  // there is no such choice
  cancelled.cancel();
  replaced = std::move(other);
  const int left = std::exchange(allocations_left, -1);
  EXPECT_EQ(left, 0);  // none was asked for
  engine->step(false);
  EXPECT_EQ(engine->scheduler().num_running() + engine->scheduler().num_waiting(), 1U);
  EXPECT_TRUE(ends_well(cancelled, 3));
  replaced.cancel();
  engine->step(false);
  EXPECT_TRUE(ends_well(replaced));
  EXPECT_TRUE(engine->scheduler().is_idle());
}

/// Bytes that submit() asks for.
size_t bytes_to_submit(EngineImpl& engine, Request request, std::vector<Stream>& taken) {
  const size_t before = allocated_bytes;
  auto stream = engine.submit(std::move(request));
  const size_t bytes = allocated_bytes - before;
  if (stream.ok()) {
    taken.push_back(std::move(stream).value());
  } else {
    EXPECT_EQ(stream.error().code, ErrorCode::overloaded) << stream.error().to_string();
  }
  return bytes;
}

// What waits is one copy of a prompt, which is the caller's; what is refused costs nothing.
TEST(EngineMemory, LongPromptsWaitOnceAndAreRefusedUncopied) {
  constexpr size_t kLong = 100'000;
  const auto engine = engine_with({.context = 200'000,
                                   .chunk_tokens = 8,
                                   .max_sequences = 2,
                                   .kv_tokens = 200'000,
                                   .max_waiting_tokens = 128 * kLong + 1000});
  Request request;
  request.prompt.assign(kLong, 5);
  request.stop.stop_token_ids.assign(10'000, 6);
  request.num_choices = 128;
  std::vector<Stream> taken;
  EXPECT_LT(bytes_to_submit(*engine, request, taken), 300'000U);
  ASSERT_EQ(taken.size(), 1U);
  request.num_choices = 1;
  EXPECT_LT(bytes_to_submit(*engine, request, taken), 2000U);
  ASSERT_EQ(taken.size(), 1U) << "tokens are counted once for each choice";
  request.prompt.resize(1000);
  bytes_to_submit(*engine, request, taken);
  EXPECT_EQ(taken.size(), 2U);
  request.prompt.resize(1);
  bytes_to_submit(*engine, request, taken);
  EXPECT_EQ(taken.size(), 2U);
  taken.clear();
  engine->step(false);
  EXPECT_EQ(engine->stats().waiting_tokens, 0);
}

// Nor is any needed to end everything where the engine's own books are wrong.
TEST(EngineWithoutMemory, AFaultOfItsOwnEndsEveryStream) {
  const auto engine = small_engine();
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 4; ++i) streams.push_back(submit(*engine, 10 + i, 50));
  engine->step(false);
  auto& group = const_cast<CacheGroup&>(engine->scheduler().cache().groups().front());
  group.retain(0);  // which nobody will give back
  allocations_left = 0;
  engine->step(false);
  for (int i = 0; i < 5; ++i) {
    allocations_left = 0;
    engine->step(false);
  }
  allocations_left = -1;
  for (Stream& stream : streams) {
    std::optional<ErrorCode> code;
    while (const auto event = stream.next()) {
      if (const auto* error = std::get_if<ErrorEvent>(&*event)) code = error->error.code;
    }
    EXPECT_EQ(code, ErrorCode::internal);
  }
  EXPECT_GE(engine->stats().num_broken_invariants, 1);
  EXPECT_TRUE(engine->scheduler().is_idle());
  engine->scheduler().check_invariants();
}

// A session that there is no memory for is an error, leaves no file and changes nothing.
TEST(EngineWithoutMemory, SessionsAreSavedAndLoadedOrNot) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "headrace_no_memory";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string path = (folder / "talk").string();
  const auto engine = small_engine();
  Stream stream = submit(*engine, 10, 40);
  std::vector<TokenId> tokens = prompt_of(10);
  for (int i = 0; i < 50; ++i) engine->step(false);
  while (const auto event = stream.next()) {
    if (const auto* token = std::get_if<TokenEvent>(&*event)) tokens.push_back(token->id);
  }
  // Whether the n-th allocation of `work` failed; then it must have said so.
  const auto fails = [&](int n, auto work) {
    allocations_left = n;
    const auto done = work();
    const bool has_failed = std::exchange(allocations_left, -1) < 0;
    EXPECT_EQ(done.ok(), !has_failed) << "allocation " << n;
    if (has_failed && !done.ok()) {
      EXPECT_EQ(done.error().code, ErrorCode::resource_exhausted) << done.error().to_string();
    }
    return has_failed;
  };
  int num_failed = 0;
  while (fails(num_failed, [&] { return engine->save_session(tokens, "", path, "note"); })) {
    EXPECT_TRUE(fs::is_empty(folder)) << "allocation " << num_failed;
    engine->scheduler().check_invariants();
    ASSERT_LT(++num_failed, 1000);
  }
  EXPECT_GT(num_failed, 20);
  const auto other = small_engine(false);  // a lost event fails nobody's work
  const CacheGroup& group = other->scheduler().cache().groups().front();
  num_failed = 0;
  while (fails(num_failed, [&] { return other->load_session(path, ""); })) {
    EXPECT_EQ(group.num_cached(), 0) << "allocation " << num_failed;
    EXPECT_EQ(group.pool().num_unreferenced(), group.pool().num_blocks());
    other->scheduler().check_invariants();
    ASSERT_LT(++num_failed, 1000);
  }
  EXPECT_GT(num_failed, 20);
  EXPECT_EQ(group.num_cached(), 4);  // 20 and 40 tokens, all but the last computed
}

// Whatever requests leave behind would show: nothing does, not even in vectors that grow.
TEST(EngineMemory, DoesNotGrowWithRequests) {
  constexpr int kNumRequests = 100'000;
  const auto engine = small_engine(false);
  // Most of any moment between requests of the first tenth, and of the last.
  int64_t most_allocations[2] = {};
  int64_t most_bytes[2] = {};
  for (int i = 0; i < kNumRequests; i += 4) {
    for (int j = 0; j < 4; ++j) {
      // Of different prompts, so that the prefix cache fills up and gives up blocks; some are
      // cancelled, some have several choices.
      const auto first = static_cast<TokenId>((i + j) * 7 % 900 + 50);
      Stream stream = submit(*engine, first, 1 + j, j == 1 ? 2 : 1);
      if (j == 2) stream.cancel();
      for (int step = 0; step < 12; ++step) engine->step(false);
      ASSERT_TRUE(ends_well(stream, j == 1 ? 2 : 1));
    }
    if (i >= kNumRequests / 10 && i < kNumRequests / 10 * 9) continue;
    const size_t part = i < kNumRequests / 2 ? 0 : 1;
    most_allocations[part] = std::max(most_allocations[part], num_live_allocations.load());
    most_bytes[part] = std::max(most_bytes[part], live_bytes.load());
  }
  ASSERT_TRUE(engine->scheduler().is_idle());
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_stopped + stats.num_length + stats.num_cancelled, kNumRequests / 4 * 5);
  EXPECT_GT(most_bytes[0], 10'000);  // they are counted
  EXPECT_EQ(most_allocations[1], most_allocations[0]);
  EXPECT_EQ(most_bytes[1], most_bytes[0]);
}

// Also where memory runs out while the engine is destroyed.
TEST(EngineWithoutMemory, ItsEndEndsEveryStream) {
  auto engine = small_engine();
  Stream running = submit(*engine, 10, 50);
  engine->step(false);
  Stream unseen = submit(*engine, 11, 50);
  for (int i = 0; i < 3; ++i) {
    allocations_left = i;
    engine->step(false);
    allocations_left = -1;
  }
  Stream last = submit(*engine, 12, 50);
  allocations_left = 0;
  engine.reset();
  allocations_left = -1;
  for (Stream* stream : {&running, &unseen, &last}) EXPECT_TRUE(ends_well(*stream));
}

}  // namespace
}  // namespace headrace
