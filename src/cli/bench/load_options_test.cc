// From options to loads: what is combined, what is assumed, what contradicts.
#include "cli/bench/load_options.h"

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

std::vector<std::string> names(const LoadArgs& args, const std::vector<int64_t>& sequences = {}) {
  const auto plans = load_plans(args, sequences);
  EXPECT_TRUE(plans.ok()) << plans.error().to_string();
  std::vector<std::string> out;
  if (!plans.ok()) return out;
  for (const LoadPlan& plan : *plans) {
    out.push_back(load_name(plan) + " np" + std::to_string(plan.max_sequences) + " " +
                  plan.spec.input.text() + "/" + plan.spec.output.text());
  }
  return out;
}

std::string fault(const LoadArgs& args) {
  const auto plans = load_plans(args, {});
  EXPECT_FALSE(plans.ok());
  return plans.ok() ? "" : plans.error().to_string();
}

using Names = std::vector<std::string>;

TEST(LoadOptions, Defaults) {
  EXPECT_EQ(names({}), Names{"concurrency 16 np16 512/128"});
  const LoadPlan plan = load_plans({}, {})->front();
  EXPECT_EQ(plan.pace.num_requests, 64);
  EXPECT_EQ(plan.pace.seconds, 0);
  EXPECT_EQ(plan.num_warm_up, 8);
  EXPECT_EQ(plan.spec.num_turns, 1);
  EXPECT_EQ(plan.spec.prefix_tokens, 0);
  EXPECT_TRUE(plan.prefix_cache);
  EXPECT_TRUE(plan.slo.is_empty());
  EXPECT_EQ(plan.kv_bytes, 0U);
}

TEST(LoadOptions, EveryCombination) {
  LoadArgs args;
  args.concurrencies = {1, 4, 1};
  args.inputs = "10,20..30";
  args.outputs = "5";
  EXPECT_EQ(names(args), (Names{"concurrency 1 np1 10/5", "concurrency 4 np4 10/5",
                                "concurrency 1 np1 20..30/5", "concurrency 4 np4 20..30/5"}));
  args.inputs = "10";
  args.static_batching = true;
  EXPECT_EQ(names(args, {2}),
            (Names{"concurrency 1 np2 10/5", "concurrency 1 static np2 10/5",
                   "concurrency 1 padded np2 10/5", "concurrency 4 np2 10/5",
                   "concurrency 4 static np2 10/5", "concurrency 4 padded np2 10/5"}));
  args = {};
  args.rates = "0.5,2";
  EXPECT_EQ(names(args, {8, 32}), (Names{"rate 0.5 np8 512/128", "rate 2 np8 512/128",
                                         "rate 0.5 np32 512/128", "rate 2 np32 512/128"}));
}

TEST(LoadOptions, WhatIsGivenArrives) {
  LoadArgs args;
  args.rates = "3";
  args.seconds = 5;
  args.warm_up = 0;
  args.prefix_tokens = {450};
  args.prefixes = 7;
  args.turns = 2;
  args.seed = 99;
  args.temperature = 0.5;
  args.slo = "ttft:1s";
  args.kv_memory = "1.5GB";
  args.no_prefix_cache = true;
  args.max_wait_ms = 20;
  args.max_slowdown = 1.5;
  const LoadPlan plan = load_plans(args, {4})->front();
  EXPECT_EQ(plan.pace.rate, 3);
  EXPECT_EQ(plan.pace.num_requests, 0);
  EXPECT_EQ(plan.pace.seconds, 5);
  EXPECT_EQ(plan.pace.temperature, 0.5);
  EXPECT_EQ(plan.num_warm_up, 0);
  EXPECT_EQ(plan.spec.prefix_tokens, 450);
  EXPECT_EQ(plan.spec.num_prefixes, 7);
  EXPECT_EQ(plan.spec.num_turns, 2);
  EXPECT_EQ(plan.spec.seed, 99U);
  EXPECT_EQ(plan.slo.ttft_ms, 1000);
  EXPECT_EQ(plan.kv_bytes, 1'500'000'000U);
  EXPECT_FALSE(plan.prefix_cache);
  EXPECT_EQ(plan.max_wait_ms, 20);
  EXPECT_EQ(plan.max_slowdown, 1.5);
}

TEST(LoadOptions, Contradictions) {
  LoadArgs args;
  args.rates = "1";
  args.concurrencies = {2};
  EXPECT_EQ(fault(args).rfind("--concurrency: contradicts --rate", 0), 0U) << fault(args);
  args = {};
  args.requests = 5;
  args.seconds = 5;
  EXPECT_EQ(fault(args).rfind("--duration: contradicts --requests", 0), 0U) << fault(args);
  args = {};
  args.prefixes = 5;
  EXPECT_NE(fault(args).find("--prefix-len"), std::string::npos);
}

TEST(LoadOptions, BadValuesNameTheirOption) {
  const auto with = [](const auto& set) {
    LoadArgs args;
    set(args);
    return fault(args);
  };
  for (const char* text : {"", "0", "-1", "x", "1,,2", "1e3", "nan", "2000000"}) {
    EXPECT_EQ(with([&](LoadArgs& args) { args.rates = text; }).rfind("--rate: expected", 0), 0U)
        << text;
  }
  for (const char* text : {"", "0", "x", "5,", "normal:5"}) {
    EXPECT_EQ(with([&](LoadArgs& args) { args.inputs = text; }).rfind("--input-len: expected", 0),
              0U);
    EXPECT_EQ(with([&](LoadArgs& args) { args.outputs = text; }).rfind("--output-len: expected", 0),
              0U);
  }
  EXPECT_EQ(with([](LoadArgs& args) { args.slo = "x"; }).rfind("--slo: expected", 0), 0U);
  EXPECT_EQ(with([](LoadArgs& args) { args.kv_memory = "x"; }).rfind("--kv-memory: expected", 0),
            0U);
  EXPECT_EQ(with([](LoadArgs& args) { args.max_slowdown = 0.5; }).rfind("--max-slowdown:", 0), 0U);
  EXPECT_NE(with([](LoadArgs& args) { args.slo = "\x1b[2J"; }).find("\\x1b"), std::string::npos);
}

TEST(LoadOptions, OptionsThatNeedALoad) {
  EXPECT_EQ(first_load_option({}), "");
  LoadArgs args;
  args.is_on = true;
  EXPECT_EQ(first_load_option(args), "");
  args.turns = 1;
  EXPECT_EQ(first_load_option(args), "--turns");
  // Every option of a load is known there.
  LoadArgs all;
  for (const Option& option : load_options(all)) {
    if (option.target == OptionTarget(&all.is_on)) continue;
    LoadArgs one;
    const auto options = load_options(one);
    const auto same = std::find_if(options.begin(), options.end(), [&](const Option& other) {
      return other.names == option.names;
    });
    std::visit(
        [](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          if constexpr (std::is_same_v<T, bool>) {
            *target = true;
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            target->push_back(1);
          } else if constexpr (requires { target->emplace(); }) {
            target->emplace();
          }
        },
        same->target);
    EXPECT_NE(first_load_option(one), "") << option.names;
  }
}

}  // namespace
}  // namespace headrace::cli
