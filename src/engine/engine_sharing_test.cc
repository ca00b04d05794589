// What sequences share: the prompt of a request's choices, prefixes that others computed, and what
// an engine tells of them.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "engine/test_engine.h"

namespace headrace {
namespace {

EngineOptions roomy_options() {
  EngineOptions options = small_options();
  options.kv_tokens = 20 * 200;
  options.chunk_tokens = 64;
  options.max_sequences = 8;
  return options;
}

int64_t cached_tokens(const Outcome& outcome) {
  return outcome.finish.value().stats.cached_tokens;
}

TEST(EngineChoices, EachIsItsOwnAndThePromptIsComputedOnce) {
  for (const int64_t num_prompt : {1, 2, 16, 17, 50, 100}) {
    Fixture fixture(roomy_options());
    Request request = request_of(prompt_of(static_cast<size_t>(num_prompt), 3), 12, 5);
    request.stop.ignore_eos = true;
    request.num_choices = 4;
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const auto choices = read_choices(stream, 4);
    std::set<std::vector<TokenId>> distinct;
    for (int32_t i = 0; i < 4; ++i) {
      expect_same(choices[static_cast<size_t>(i)], expected(request, 200, i));
      distinct.insert(choices[static_cast<size_t>(i)].tokens);
    }
    EXPECT_EQ(distinct.size(), 4U);
    // The prompt but its last token once; that and eleven generated ones in each choice.
    EXPECT_EQ(fixture.runner->num_rows(), num_prompt - 1 + 4 * 12);
    fixture.expect_all_blocks_free();
  }
}

TEST(EngineChoices, WithoutAPlaceTheyBeginLater) {
  EngineOptions options = roomy_options();
  options.max_sequences = 2;
  for (const bool with_cache : {true, false}) {
    options.prefix_cache = with_cache;
    Fixture fixture(options);
    Request request = request_of(prompt_of(70, 3), 12, 5);
    request.num_choices = 5;
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const auto choices = read_choices(stream, 5);
    for (int32_t i = 0; i < 5; ++i) {
      expect_same(choices[static_cast<size_t>(i)], expected(request, 200, i));
    }
  }
}

TEST(EngineChoices, OneIsCancelledAndTheOthersGoOn) {
  for (const int steps_before : {0, 1, 2, 4}) {
    Fixture fixture(roomy_options());
    Request request = request_of(prompt_of(70, 3), 20, 5);
    request.num_choices = 3;
    auto stream = fixture.submit(request);
    for (int i = 0; i < steps_before; ++i) fixture.engine->step(false);
    stream.cancel(0);  // which computes the prompt for all
    fixture.run_until_idle();
    const auto choices = read_choices(stream, 3);
    EXPECT_EQ(choices[0].finish->reason, FinishReason::cancelled);
    expect_same(choices[1], expected(request, 200, 1));
    expect_same(choices[2], expected(request, 200, 2));
    fixture.expect_all_blocks_free();
  }
}

TEST(EnginePrompts, LogprobsOfThePromptComeOnceWhateverHappens) {
  EngineOptions options = small_options();
  for (const int64_t chunk : {4, 7, 64}) {
    options.chunk_tokens = chunk;
    Fixture fixture(options);
    Request request = request_of(prompt_of(60, 3), 5, 5);
    request.num_prompt_logprobs = 0;
    auto stream = fixture.submit(request);
    for (int i = 0; i < 3; ++i) fixture.engine->step(false);
    fixture.runner->fail_next_step();
    fixture.run_until_idle();
    std::vector<PromptLogprob> scores;
    int64_t num_tokens = 0;
    while (const auto event = stream.next()) {
      if (const auto* part = std::get_if<PromptLogprobsEvent>(&*event)) {
        EXPECT_EQ(part->first_position, static_cast<int64_t>(scores.size()) + 1);
        EXPECT_EQ(num_tokens, 0);
        scores.insert(scores.end(), part->tokens.begin(), part->tokens.end());
      }
      num_tokens += std::holds_alternative<TokenEvent>(*event) ? 1 : 0;
    }
    ASSERT_EQ(scores.size(), 59U);
    for (size_t i = 0; i < scores.size(); ++i) {
      const std::span<const TokenId> prompt(request.prompt);
      EXPECT_EQ(scores[i].token.id, prompt[i + 1]);
      EXPECT_EQ(scores[i].token.logprob, checksum_score(prompt.first(i + 2)));
    }
    EXPECT_EQ(num_tokens, 5);
  }
}

TEST(EnginePrefixes, TheSamePromptAgainIsFound) {
  Fixture fixture(roomy_options());
  const Request request = request_of(prompt_of(100, 3), 5, 5);
  int64_t last_cached = -1;
  for (int i = 0; i < 4; ++i) {
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const Outcome got = read(stream);
    expect_same(got, expected(request, 200));
    EXPECT_GE(cached_tokens(got), last_cached);
    last_cached = cached_tokens(got);
  }
  EXPECT_EQ(last_cached, 99) << "all but the last token, whose logits are wanted";
  EXPECT_EQ(fixture.engine->stats().prefix_query_tokens, 400);
  EXPECT_EQ(fixture.engine->stats().prefix_hit_tokens, 3 * 99);
}

TEST(EnginePrefixes, AConversationGoesOnWithinABlock) {
  Fixture fixture(roomy_options());
  Request request = request_of(prompt_of(21, 3), 10, 5);
  request.stop.ignore_eos = true;
  int64_t num_rows = 0;
  for (int turn = 0; turn < 5; ++turn) {
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const Outcome got = read(stream);
    expect_same(got, expected(request, 200));
    if (turn > 0) {
      // The last token that was said had not been computed; then the three new ones.
      EXPECT_EQ(cached_tokens(got), static_cast<int64_t>(request.prompt.size()) - 4);
      EXPECT_EQ(fixture.runner->num_rows() - num_rows, 4 + 9);
    }
    num_rows = fixture.runner->num_rows();
    request.prompt.insert(request.prompt.end(), got.tokens.begin(), got.tokens.end());
    for (TokenId id = 1; id < 4; ++id) request.prompt.push_back(id);
  }
}

TEST(EnginePrefixes, ScopesAndThoseWhoDoNotWantItShareNothing) {
  Fixture fixture(roomy_options());
  Request request = request_of(prompt_of(100, 3), 5, 5);
  request.cache_scope = "one key";
  for (const auto& [scope, uses, cached] : {std::tuple{"one key", true, 0},
                                            {"another key", true, 0},
                                            {"one key", false, 0},
                                            {"another key", true, 99},
                                            {"", true, 0}}) {
    request.cache_scope = scope;
    request.use_prefix_cache = uses;
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const Outcome got = read(stream);
    expect_same(got, expected(request, 200));
    EXPECT_EQ(cached_tokens(got), cached) << scope;
  }
}

TEST(EnginePrefixes, OffMeansOff) {
  EngineOptions options = roomy_options();
  options.prefix_cache = false;
  Fixture fixture(options);
  const Request request = request_of(prompt_of(100, 3), 5, 5);
  for (int i = 0; i < 3; ++i) {
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const Outcome got = read(stream);
    expect_same(got, expected(request, 200));
    EXPECT_EQ(cached_tokens(got), 0);
  }
  for (const CacheGroup& group : fixture.scheduler().cache().groups()) {
    EXPECT_EQ(group.num_cached(), 0);
  }
}

TEST(EnginePrefixes, TwoThatDivergeWithinABlockShareItsBeginning) {
  Fixture fixture(roomy_options());
  Request first = request_of(prompt_of(40, 3), 2, 5);
  Request second = first;
  second.prompt[37] = 500;
  for (const Request& request : {first, second, first}) {
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    expect_same(read(stream), expected(request, 200));
  }
  // The second found 37 of its tokens, the third all but the last.
  EXPECT_EQ(fixture.engine->stats().prefix_hit_tokens, 37 + 39);
}

TEST(EnginePrefixes, ThoseThatComeTogetherWaitForTheFirst) {
  EngineOptions options = roomy_options();
  options.chunk_tokens = 16;
  Fixture fixture(options);
  std::vector<Request> requests;
  std::vector<Stream> streams;
  for (TokenId i = 0; i < 6; ++i) {
    requests.push_back(request_of(prompt_of(96, 3), 4, 5));
    requests.back().stop.ignore_eos = true;
    requests.back().prompt.push_back(i);
    streams.push_back(fixture.submit(requests.back()));
  }
  fixture.run_until_idle();
  for (size_t i = 0; i < requests.size(); ++i) {
    expect_same(read(streams[i]), expected(requests[i], 200));
  }
  // The prefix once; the own token of each, and three of the four it generates.
  EXPECT_EQ(fixture.runner->num_rows(), 96 + 6 * 4);
}

TEST(EnginePrefixes, UnusedOnesAreForgottenFromTheirEnd) {
  EngineOptions options = small_options();
  options.kv_tokens = 200;
  options.max_sequences = 1;
  Fixture fixture(options, {{.block_tokens = 16, .window = 0}});
  const auto run = [&](const Request& request) {
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    const Outcome got = read(stream);
    expect_same(got, expected(request, 200));
    return cached_tokens(got);
  };
  const Request first = request_of(prompt_of(130, 3), 1, 5);
  EXPECT_EQ(run(first), 0);
  EXPECT_EQ(run(request_of(prompt_of(100, 50), 1, 5)), 0);  // 7 of 13 blocks: 3 of the first go
  const int64_t found = run(first);
  EXPECT_GE(found, 80);
  EXPECT_LT(found, 129);
  EXPECT_GT(fixture.engine->stats().rung(MemoryRung::evict_prefixes), 0);
}

TEST(EnginePrefixes, AreForgottenWhenTold) {
  Fixture fixture(roomy_options());
  const Request request = request_of(prompt_of(100, 3), 5, 5);
  for (int i = 0; i < 2; ++i) {
    auto stream = fixture.submit(request);
    fixture.run_until_idle();
    EXPECT_EQ(cached_tokens(read(stream)), 0);
    fixture.engine->clear_prefix_cache();
    fixture.engine->step(false);
  }
}

TEST(EnginePrefixes, WhatRunsIsFoundAgainAfterThat) {
  Fixture fixture(small_options());
  Request request = request_of(prompt_of(60, 1), 60, 5);
  request.stop.ignore_eos = true;
  auto stream = fixture.submit(request);
  for (int i = 0; i < 20; ++i) fixture.engine->step(false);
  fixture.engine->clear_prefix_cache();
  fixture.run_until_idle();
  const Outcome first = read(stream);
  expect_same(first, expected(request, 200));
  request.prompt.insert(request.prompt.end(), first.tokens.begin(), first.tokens.end());
  request.stop.max_tokens = 1;
  auto again = fixture.submit(request);
  fixture.run_until_idle();
  EXPECT_EQ(read(again).finish->stats.cached_tokens, 60 + 60 - 1);
}

TEST(EngineKvEvents, TellWhatCanBeFound) {
  EngineOptions options = roomy_options();
  options.kv_events = true;
  Fixture fixture(options, {{.block_tokens = 16, .window = 0}});
  auto stream = fixture.submit(request_of(prompt_of(40, 3), 1, 5));
  fixture.run_until_idle();
  auto events = fixture.engine->take_kv_events();
  ASSERT_EQ(events.size(), 2U) << "two full blocks; the third is not full";
  EXPECT_EQ(events[0].kind, KvEvent::Kind::stored);
  EXPECT_EQ(events[0].tokens, prompt_of(16, 3));
  EXPECT_EQ(events[1].parent, events[0].hash);
  EXPECT_EQ(events[1].number, events[0].number + 1);
  EXPECT_TRUE(fixture.engine->take_kv_events().empty());
  fixture.engine->clear_prefix_cache();
  fixture.engine->step(false);
  events = fixture.engine->take_kv_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, KvEvent::Kind::cleared);
}

TEST(EngineKvEvents, OfAnEngineThatNobodyListensToAreDropped) {
  EngineOptions options = small_options();
  options.kv_events = true;
  Fixture fixture(options, {{.block_tokens = 1, .window = 0}});
  for (TokenId i = 0; i < 400; ++i) {  // about 150 000 blocks that become known and are given up
    auto stream = fixture.submit(request_of(prompt_of(190, i), 1, 5));
    fixture.run_until_idle();
  }
  const auto events = fixture.engine->take_kv_events();
  EXPECT_LE(events.size(), 65'537U);
  EXPECT_GT(events.size(), 1000U);
  EXPECT_EQ(events.front().kind, KvEvent::Kind::cleared);
  for (size_t i = 1; i < events.size(); ++i) {
    ASSERT_EQ(events[i].number, events[i - 1].number + 1);
  }
}

}  // namespace
}  // namespace headrace
