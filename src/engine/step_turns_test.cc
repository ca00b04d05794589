// Engines that share their threads: one step at a time, in turn, and the answers are those that
// each gives alone.
#include "engine/step_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "engine/test_engine.h"
#include "tests/tiny_engine.h"

namespace headrace {
namespace {

void wait_until_waiting(const StepTurns& turns, int64_t count) {
  while (turns.num_waiting() < count) std::this_thread::yield();
}

TEST(StepTurns, GoToWhoCameFirst) {
  StepTurns turns;
  EXPECT_EQ(turns.num_waiting(), 0);
  std::string order;  // guarded by the turns
  std::optional<StepTurns::Turn> first(turns.take());
  EXPECT_EQ(turns.num_waiting(), 0);
  std::vector<std::thread> others;
  for (const char name : {'b', 'c'}) {
    others.emplace_back([&, name] {
      for (int i = 0; i < 3; ++i) {
        const StepTurns::Turn turn = turns.take();
        order += name;
        wait_until_waiting(turns, i < 2 || name == 'b' ? 1 : 0);  // the other one is back
      }
    });
    wait_until_waiting(turns, static_cast<int64_t>(others.size()));
  }
  first.reset();
  for (auto& other : others) other.join();
  EXPECT_EQ(order, "bcbcbc");
}

TEST(StepTurns, WhoWantsItAgainWaitsForTheOthers) {
  StepTurns turns;
  std::string order;
  std::optional<StepTurns::Turn> turn(turns.take());
  std::thread other([&] {
    const StepTurns::Turn mine = turns.take();
    order += 'b';
  });
  wait_until_waiting(turns, 1);
  order += 'a';
  turn.reset();
  turn.emplace(turns.take());
  order += 'a';
  turn.reset();
  other.join();
  EXPECT_EQ(order, "aba");
}

/// Four requests for one engine.
std::vector<Request> four_requests(TokenId first) {
  std::vector<Request> out;
  for (TokenId i = 0; i < 4; ++i) {
    out.push_back(request_of(prompt_of(30, first + 40 * i), 100, 3));
    out.back().stop.ignore_eos = true;
  }
  return out;
}

std::vector<Stream> submit_all(Fixture& fixture, const std::vector<Request>& requests) {
  std::vector<Stream> streams;
  for (const Request& request : requests) streams.push_back(fixture.submit(request));
  return streams;
}

int64_t num_steps_alone() {
  Fixture fixture(small_options());
  auto streams = submit_all(fixture, four_requests(0));
  fixture.run_until_idle();
  return fixture.runner->num_steps();
}

/// Two engines that take turns. In a step, each waits for the other to want one too, unless that
/// has done `num_steps`.
struct TwoEngines {
  explicit TwoEngines(int64_t num_steps) {
    EngineOptions options = small_options();
    options.turns = turns;
    for (size_t i = 0; i < 2; ++i) {
      fixtures.push_back(std::make_unique<Fixture>(options));
      fixtures.back()->runner->on_step([this, i, num_steps](int64_t /*num_rows*/) {
        EXPECT_FALSE(is_in_step.exchange(true)) << "two steps at once";
        order.push_back(i);
        if (std::count(order.begin(), order.end(), 1 - i) < num_steps) {
          wait_until_waiting(*turns, 1);
        }
        is_in_step = false;
      });
    }
  }

  std::shared_ptr<StepTurns> turns = std::make_shared<StepTurns>();
  std::atomic<bool> is_in_step = false;
  std::vector<size_t> order;  // of steps; guarded by the turns
  std::vector<std::unique_ptr<Fixture>> fixtures;
};

TEST(StepTurns, EnginesStepOneByOne) {
  const int64_t num_steps = num_steps_alone();
  ASSERT_GT(num_steps, 100);
  TwoEngines two(num_steps);
  std::vector<std::vector<Request>> requests;
  std::vector<std::vector<Stream>> streams;
  for (TokenId i = 0; i < 2; ++i) {
    requests.push_back(four_requests(500 * i));
    streams.push_back(submit_all(*two.fixtures[static_cast<size_t>(i)], requests.back()));
  }
  for (auto& fixture : two.fixtures) fixture->engine->start();
  for (size_t of = 0; of < 2; ++of) {
    for (size_t i = 0; i < streams[of].size(); ++i) {
      expect_same(read(streams[of][i]), expected(requests[of][i], 200));
    }
  }
  for (auto& fixture : two.fixtures) fixture->engine.reset();
  ASSERT_EQ(static_cast<int64_t>(two.order.size()), 2 * num_steps);
  for (size_t i = 1; i < two.order.size(); ++i) {
    ASSERT_NE(two.order[i], two.order[i - 1]) << "at " << i << ": it did not wait for the other";
  }
}

TEST(StepTurns, AStepThatFailsPassesItsTurnOn) {
  TwoEngines two(0);
  two.fixtures[0]->runner->fail_next_step();
  Stream failing = two.fixtures[0]->submit(request_of(prompt_of(10, 1), 3, 1));
  two.fixtures[0]->engine->step(false);
  const Request request = request_of(prompt_of(10, 1), 3, 1);
  Stream stream = two.fixtures[1]->submit(request);
  two.fixtures[1]->run_until_idle();
  expect_same(read(stream), expected(request, 200));
  two.fixtures[0]->run_until_idle();
  EXPECT_TRUE(read(failing).finish);
}

// An engine that is told to stop while it waits for its turn does so without a step.
TEST(StepTurns, AnEngineStopsInTheQueue) {
  const auto turns = std::make_shared<StepTurns>();
  EngineOptions options = small_options();
  options.turns = turns;
  Fixture fixture(options);
  std::optional<StepTurns::Turn> turn(turns->take());
  Stream stream = fixture.submit(request_of(prompt_of(10, 1), 3, 1));
  fixture.engine->start();
  wait_until_waiting(*turns, 1);
  std::thread end([&] { fixture.engine.reset(); });
  stream.cancel();
  turn.reset();
  end.join();
  EXPECT_EQ(read(stream).finish->reason, FinishReason::cancelled);
}

TEST(StepTurns, TwoModelsGiveWhatEachGivesAlone) {
  constexpr size_t kRequests = 12;
  const std::vector<test::TinyOptions> kinds{test::tiny_gemma3_options(), test::TinyOptions()};
  const auto pool = std::make_shared<ThreadPool>(2);
  std::vector<tiny::Loaded> shared;
  std::vector<std::vector<tiny::Answer>> alone;
  for (const auto& kind : kinds) {
    const tiny::Loaded own(test::tiny_model(kind));
    auto engine = std::move(make_engine(*own.model, {.max_sequences = 4}).value());
    auto& answers = alone.emplace_back();
    for (size_t i = 0; i < kRequests; ++i) {
      answers.push_back(tiny::read(std::move(engine->submit(tiny::request_of(i)).value())));
    }
    shared.emplace_back(test::tiny_model(kind), pool);
  }
  EngineOptions options;
  options.max_sequences = 4;
  options.turns = std::make_shared<StepTurns>();
  std::vector<std::unique_ptr<Engine>> engines;
  for (auto& loaded : shared) {
    engines.push_back(std::move(make_engine(*loaded.model, options).value()));
  }
  std::vector<std::vector<Stream>> streams(engines.size());
  for (size_t i = 0; i < kRequests; ++i) {
    for (size_t of = 0; of < engines.size(); ++of) {
      streams[of].push_back(std::move(engines[of]->submit(tiny::request_of(i)).value()));
    }
  }
  for (size_t i = 0; i < kRequests; ++i) {
    for (size_t of = 0; of < engines.size(); ++of) {
      EXPECT_EQ(tiny::read(std::move(streams[of][i])), alone[of][i]) << "model " << of;
    }
  }
}

}  // namespace
}  // namespace headrace
