// Who is served when: classes and aging, fairness, longest prefix first, company, deadlines, a full
// queue, long prompts beside running streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/scheduler/step_pacer.h"
#include "engine/test_engine.h"

namespace headrace {
namespace {

/// An engine that runs one at a time, and the order in which requests end.
struct Line {
  explicit Line(EngineOptions options = one_at_a_time())
      : fixture(options, {{.block_tokens = 16, .window = 0}}) {}

  static EngineOptions one_at_a_time() {
    EngineOptions options = small_options();
    options.max_sequences = 1;
    options.aging_ms = 1000;
    return options;
  }

  void add(const std::string& name, Request request) {
    names.push_back(name);
    streams.push_back(fixture.submit(request));
  }
  void add(const std::string& name, int32_t priority, const std::string& owner = "") {
    Request request = request_of(prompt_of(20, static_cast<TokenId>(100 * names.size())), 4, 5);
    request.priority = priority;
    request.owner = owner;
    add(name, request);
  }

  /// The names of those that end, from the last call on.
  std::string order() {
    std::string out;
    has_ended.resize(streams.size());
    do {
      fixture.engine->step(false);
      fixture.scheduler().check_invariants();
      for (size_t k = 0; k < streams.size(); ++k) {
        while (!has_ended[k] && streams[k].wait_for(std::chrono::milliseconds(0))) {
          const auto event = streams[k].next();
          if (std::holds_alternative<TokenEvent>(event.value())) continue;
          has_ended[k] = true;
          out += names[k];
        }
      }
    } while (!fixture.scheduler().is_idle());
    return out;
  }

  Fixture fixture;
  std::vector<std::string> names;
  std::vector<Stream> streams;
  std::vector<bool> has_ended;
};

TEST(EngineOrder, ClassesFirstThenArrival) {
  Line line;
  line.add("a", 0);
  line.fixture.engine->step(false);
  line.add("b", 3);
  line.add("c", 0);
  line.add("d", -2);
  line.add("e", -2);
  EXPECT_EQ(line.order(), "adecb");
}

TEST(EngineOrder, WhoWaitsLongMovesUp) {
  Line line;
  line.add("a", 0);
  line.fixture.engine->step(false);
  line.add("b", 2);
  line.fixture.clock->advance_ms(2500);  // b counts as 0 now, and came before c
  line.add("c", 0);
  line.add("d", -1);
  EXPECT_EQ(line.order(), "adbc");
}

TEST(EngineOrder, NobodyStarves) {
  Line line;
  line.add("a", 0);
  line.fixture.engine->step(false);
  line.add("b", kMaxPriority);
  // A stream of the most urgent requests, each of a new owner.
  int num_before = 0;
  while (num_before < 200 && !line.streams[1].wait_for(std::chrono::milliseconds(0))) {
    line.add("u", kMinPriority, std::to_string(line.streams.size()));
    line.fixture.clock->advance_ms(200);
    for (int step = 0; step < 4; ++step) line.fixture.engine->step(false);
    ++num_before;
  }
  EXPECT_GT(num_before, 60) << "sixteen classes of a second each are waited for";
  EXPECT_LT(num_before, 100);
}

TEST(EngineOrder, OwnersTakeTurns) {
  Line line;
  line.add("x", 0);
  line.fixture.engine->step(false);
  for (int i = 0; i < 4; ++i) line.add("a", 0, "greedy");
  for (int i = 0; i < 2; ++i) line.add("b", 0, "modest");
  line.add("c", 0, "third");
  EXPECT_EQ(line.order(), "xabcabaa");
}

TEST(EngineOrder, TheLongestCachedPrefixFirstWithinBounds) {
  Line line;
  Request cached = request_of(prompt_of(64, 7), 4, 5);
  line.add("a", cached);
  line.order();
  line.add("x", 0);
  line.fixture.engine->step(false);
  line.add("b", 0);
  line.add("c", cached);
  EXPECT_EQ(line.order(), "xcb");
  // But b is not passed over for ever.
  line.add("x", 0);
  line.fixture.engine->step(false);
  line.add("b", 0);
  for (int i = 0; i < 30; ++i) line.add("c", cached);
  const size_t turn = line.order().find('b');
  EXPECT_GT(turn, 5U);
  EXPECT_LE(turn, 18U);
}

TEST(EngineOrder, WaitsForCompanyNoLongerThanToldTo) {
  EngineOptions options = small_options();
  options.max_wait_ms = 50;
  Fixture fixture(options);
  const Request request = request_of(prompt_of(5, 1), 3, 5);
  auto first = fixture.submit(request);
  fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 0U);
  fixture.clock->advance_ms(49);
  fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 0U);
  fixture.clock->advance_ms(2);
  fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 1U);
  fixture.run_until_idle();
  // With as many as there are places nobody waits.
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 4; ++i) streams.push_back(fixture.submit(request_of({i}, 3, 5)));
  fixture.engine->step(false);
  EXPECT_EQ(fixture.scheduler().num_running(), 4U);
}

TEST(EngineOrder, WhoRunsDoesNotWaitForOthersCompany) {
  EngineOptions options = small_options();
  options.max_wait_ms = 1000;
  Fixture fixture(options);
  auto running = fixture.submit(request_of(prompt_of(5, 1), 100, 5));
  fixture.engine->step(false);
  fixture.clock->advance_ms(1001);
  fixture.engine->step(false);
  ASSERT_EQ(fixture.scheduler().num_running(), 1U);
  auto waiting = fixture.submit(request_of(prompt_of(5, 300), 3, 5));
  fixture.engine->step(false);
  ASSERT_EQ(fixture.scheduler().num_waiting(), 1U);
  EXPECT_EQ(fixture.scheduler().wake_ns(), 0) << "the engine's thread would sleep";
}

TEST(EngineOrder, CompanyIsOfLikeLength) {
  EngineOptions options = small_options();
  options.max_wait_ms = 50;
  options.max_sequences = 2;
  options.chunk_tokens = 200;
  Line line(options);
  const size_t lengths[] = {100, 10, 90, 12};
  for (size_t i = 0; i < 4; ++i) {
    const TokenId first = static_cast<TokenId>(200 * i);
    line.add(std::string(1, static_cast<char>('a' + i)),
             request_of(prompt_of(lengths[i], first), 2, 5));
  }
  EXPECT_EQ(line.order(), "acbd");
}

TEST(EngineOrder, AnIdleThreadWakesForThoseWhoWait) {
  EngineOptions options = small_options();
  options.max_wait_ms = 20;
  Fixture fixture(options, {{.block_tokens = 16, .window = 0}}, std::make_shared<SystemClock>());
  fixture.engine->start();
  const Request request = request_of(prompt_of(5, 1), 3, 5);
  auto stream = fixture.submit(request);
  expect_same(read(stream), expected(request, 200));
}

TEST(EngineDeadlines, EndARequestWhereverItIs) {
  for (const int steps_before : {0, 1, 5}) {
    Fixture fixture(small_options());
    Request request = request_of(prompt_of(60, 2), 100, 4);
    request.stop.ignore_eos = true;
    request.timeout_ms = 40;
    request.num_choices = 2;
    auto stream = fixture.submit(request);
    const Request other = request_of(prompt_of(20, 9), 30, 4);
    auto kept = fixture.submit(other);
    for (int i = 0; i < steps_before; ++i) fixture.engine->step(false);
    fixture.clock->advance_ms(41);
    fixture.engine->step(false);
    EXPECT_EQ(read_choices(stream, 2)[1].error.value().code, ErrorCode::deadline_exceeded);
    EXPECT_EQ(fixture.engine->stats().num_expired, 1);
    EXPECT_LE(fixture.scheduler().num_running(), 1U);
    fixture.run_until_idle();
    expect_same(read(kept), expected(other, 200));
    fixture.expect_all_blocks_free();
  }
}

TEST(EngineQueue, IsBoundedInRequestsAndTokens) {
  EngineOptions options = small_options();
  options.max_sequences = 1;
  options.max_waiting = 3;
  options.max_waiting_tokens = 100;
  Fixture fixture(options);
  std::vector<Stream> streams;
  streams.push_back(fixture.submit(request_of(prompt_of(10, 1), 30, 5)));
  fixture.engine->step(false);  // it runs, and waits no more
  streams.push_back(fixture.submit(request_of(prompt_of(60, 1), 3, 5)));
  auto refused = fixture.engine->submit(request_of(prompt_of(60, 2), 3, 5));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  streams.push_back(fixture.submit(request_of(prompt_of(10, 2), 3, 5)));
  streams.push_back(fixture.submit(request_of(prompt_of(10, 3), 3, 5)));
  refused = fixture.engine->submit(request_of(prompt_of(1, 2), 3, 5));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::overloaded);
  streams[1].cancel();
  fixture.engine->step(false);
  EXPECT_TRUE(fixture.engine->submit(request_of(prompt_of(1, 2), 3, 5)).ok());
  fixture.run_until_idle();
  EXPECT_EQ(fixture.engine->stats().waiting_tokens, 0);
}

TEST(StepPacer, LearnsHowManyRowsFit) {
  StepPacer pacer(2.0);
  EXPECT_EQ(pacer.prompt_rows(0, 256), 256) << "nobody is held up";
  EXPECT_EQ(pacer.prompt_rows(4, 256), 0) << "first it measures a step without prompts";
  pacer.observe(4, 0, 10'000'000);
  const int64_t first = pacer.prompt_rows(4, 256);
  EXPECT_GT(first, 0);
  for (int i = 0; i < 30; ++i) {
    const int64_t rows = pacer.prompt_rows(4, 256);
    pacer.observe(4, rows, 10'000'000 + rows * 250'000);  // 40 rows double a step
  }
  EXPECT_NEAR(static_cast<double>(pacer.prompt_rows(4, 256)), 40, 2);
  EXPECT_EQ(pacer.prompt_rows(4, 20), 20);
  EXPECT_EQ(pacer.prompt_rows(16, 256), 0) << "so many have not been measured";
  EXPECT_EQ(StepPacer(0).prompt_rows(4, 256), 256) << "no bound";
}

TEST(EnginePacing, LongPromptsComeInPiecesBesideRunningStreams) {
  EngineOptions options = small_options();
  options.chunk_tokens = 128;
  options.max_slowdown = 2.0;
  Fixture fixture(options);
  Request running = request_of({1}, 150, 1);
  running.stop.ignore_eos = true;
  auto stream = fixture.submit(running);
  for (int i = 0; i < 4; ++i) fixture.engine->step(false);
  const Request prompt = request_of(prompt_of(150, 5), 1, 1);
  auto second = fixture.submit(prompt);
  int64_t num_steps = 0;
  while (fixture.scheduler().num_waiting() > 0 || !second.wait_for(std::chrono::milliseconds(0))) {
    fixture.engine->step(false);
    ASSERT_LT(++num_steps, 100);
  }
  EXPECT_GT(num_steps, 2);
  fixture.run_until_idle();
  expect_same(read(second), expected(prompt, 200));
  expect_same(read(stream), expected(running, 200));
}

}  // namespace
}  // namespace headrace
