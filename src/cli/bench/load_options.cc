// See load_options.h.
#include "cli/bench/load_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cli/bench/bench_setting.h"
#include "cli/make_option.h"
#include "cli/parse_bytes.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

constexpr int64_t kDefaultConcurrency = 16;
constexpr int64_t kDefaultSequences = 16;  // of an open loop
constexpr int64_t kDefaultRequests = 64;
constexpr int64_t kMostSequences = 1024;
constexpr int64_t kMostWarmUp = 8;  // by default
constexpr size_t kMostPlans = 1000;
constexpr const char* kDefaultInput = "512";
constexpr const char* kDefaultOutput = "128";

Error bad_option(std::string option, std::string message, std::string hint = "") {
  return {ErrorCode::invalid_argument, std::move(message), std::move(option), std::move(hint)};
}

Result<double> parse_rate(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !(value >= 1e-3 && value <= 1e6)) {
    return bad_option("--rate", "expected requests a second from 0.001 to 1000000, got '" +
                                    printable(text, 60) + "'");
  }
  return value;
}

Result<std::vector<LoadLength>> lengths(const std::string& option,
                                        const std::optional<std::string>& list,
                                        const char* otherwise) {
  std::vector<LoadLength> out;
  for (const std::string& part : parts_once(list.value_or(otherwise))) {
    auto length = LoadLength::parse(printable(part, 60));
    if (!length.ok()) return std::move(length).error().at(option);
    out.push_back(*length);
  }
  return out;
}

/// What all plans have in common.
Result<LoadPlan> common_plan(const LoadArgs& args) {
  if (args.rates.has_value() && !args.concurrencies.empty()) {
    return bad_option(
        "--concurrency", "contradicts --rate",
        "give --rate for arrivals that do not wait for answers, or --concurrency for so "
        "many clients that do");
  }
  if (args.requests && args.seconds) {
    return bad_option("--duration", "contradicts --requests", "give one of them");
  }
  LoadPlan plan;
  plan.pace.num_requests = args.seconds ? 0 : args.requests.value_or(kDefaultRequests);
  plan.pace.seconds = args.seconds.value_or(0);
  plan.pace.temperature = args.temperature.value_or(0);
  plan.spec.num_prefixes = args.prefixes.value_or(1);
  plan.spec.num_turns = args.turns.value_or(1);
  plan.spec.seed = args.seed.value_or(1);
  plan.prefix_cache = !args.no_prefix_cache;
  plan.max_wait_ms = args.max_wait_ms.value_or(0);
  plan.max_slowdown = args.max_slowdown.value_or(0);
  if (plan.max_slowdown != 0 && !(plan.max_slowdown > 1)) {
    return bad_option("--max-slowdown", "expected 0 (no bound) or more than 1");
  }
  if (args.prefixes && args.prefix_tokens.empty()) {
    return bad_option("--prefixes", "there are no prefixes", "give their length with --prefix-len");
  }
  if (args.slo) {
    auto slo = parse_slo(printable(*args.slo));
    if (!slo.ok()) return std::move(slo).error().at("--slo");
    plan.slo = *slo;
  }
  if (args.kv_memory) {
    auto bytes = parse_bytes(*args.kv_memory);
    if (!bytes.ok()) return std::move(bytes).error().at("--kv-memory");
    plan.kv_bytes = *bytes;
  }
  return plan;
}

/// The plan at each rate, or with each number of clients.
Result<std::vector<LoadPlan>> at_each_load(const LoadPlan& plan, const LoadArgs& args) {
  std::vector<LoadPlan> out;
  if (args.rates.has_value()) {
    for (const std::string& part : parts_once(*args.rates)) {
      HEADRACE_ASSIGN(const double rate, parse_rate(part));
      out.push_back(plan);
      out.back().pace.rate = rate;
    }
    return out;
  }
  for (const int64_t clients : given_or<int64_t>(args.concurrencies, kDefaultConcurrency)) {
    out.push_back(plan);
    out.back().pace.concurrency = clients;
  }
  return out;
}

/// With what depends on the load, and in fixed batches too if asked for.
void add_plans(std::vector<LoadPlan>& out, LoadPlan plan, const LoadArgs& args) {
  if (plan.max_sequences == 0) {
    plan.max_sequences =
        plan.pace.rate > 0 ? kDefaultSequences : std::min(plan.pace.concurrency, kMostSequences);
  }
  plan.num_warm_up = args.warm_up.value_or(std::min(plan.max_sequences, kMostWarmUp));
  out.push_back(plan);
  if (!args.static_batching) return;
  for (const LoadBatching batching : {LoadBatching::static_batch, LoadBatching::padded}) {
    plan.batching = batching;
    out.push_back(plan);
  }
}

Option counted(std::string names, std::string value, std::string help, OptionTarget target,
               std::string otherwise, double least, double most) {
  Option option = make_option(std::move(names), std::move(value), std::move(help), target,
                              std::move(otherwise));
  option.min_value = least;
  option.max_value = most;
  return option;
}

void add_load_shape(std::vector<Option>& options, LoadArgs& args) {
  options.push_back(make_option("--load", "",
                                "Measure many requests at once on an engine, instead of single "
                                "tests; what follows needs it",
                                &args.is_on));
  options.push_back(make_option("--rate", "R[,R...]",
                                "Requests that arrive a second, at random (Poisson), whether or "
                                "not others were answered",
                                &args.rates));
  options.push_back(numbers_option("--concurrency",
                                   "Clients, each of which sends its next request when the one "
                                   "before was answered",
                                   &args.concurrencies, "16", 1, 65536));
  options.push_back(counted("--requests", "N", "Requests; with --turns, conversations",
                            &args.requests, "64", 1, 1e9));
  options.push_back(counted("--duration", "S",
                            "Send no more after S seconds, instead of a number of requests",
                            &args.seconds, "", 1e-3, 1e6));
  options.push_back(counted("--warmup", "N",
                            "Requests before those that are measured, with nothing in common "
                            "with them",
                            &args.warm_up, "8, or -np where that is less", 0, 1e6));
  options.push_back(make_option("--static-batching", "",
                                "Measure each load two more times, in fixed batches of -np: the "
                                "next begins when all of the one before have ended; the second "
                                "time all of a batch are computed until its longest has ended "
                                "(padded)",
                                &args.static_batching));
  options.push_back(make_option("--slo", "BOUNDS",
                                "What a request must keep to count as good, as in "
                                "ttft:500ms,itl:50ms,tpot:40ms,e2e:5s: to the first token, each "
                                "token after another, the same on average, to the end",
                                &args.slo));
  options.push_back(make_option("--no-ideal", "",
                                "Do not measure the rates of prompts and decoding that a load is "
                                "compared with",
                                &args.no_ideal));
}

void add_requests(std::vector<Option>& options, LoadArgs& args) {
  options.push_back(
      make_option("--input-len", "LEN[,LEN...]",
                  "New tokens of each prompt: 250, 16..512 (all as likely), "
                  "log:16..512 (short ones more often), normal:MEAN:SD or lognormal:MEAN:SD",
                  &args.inputs, kDefaultInput));
  options.push_back(make_option("--output-len", "LEN[,LEN...]",
                                "Tokens of each answer, in the same forms; end tokens do not end "
                                "it",
                                &args.outputs, kDefaultOutput));
  options.push_back(numbers_option("--prefix-len",
                                   "Tokens that prompts have in common, before those of "
                                   "--input-len",
                                   &args.prefix_tokens, "0", 0, 1 << 24));
  options.push_back(counted("--prefixes", "K",
                            "So many such beginnings, one of which each request has",
                            &args.prefixes, "1", 1, 1e6));
  options.push_back(counted("--turns", "T",
                            "Requests of a conversation: each goes on from the one before and "
                            "its answer",
                            &args.turns, "1", 1, 1000));
  options.push_back(counted("--temp,--temperature", "T",
                            "Temperature; 0 always takes the most likely token", &args.temperature,
                            "0", 0, 100));
  options.push_back(make_option("-s,--seed", "S", "Seed; the same seed gives the same requests",
                                &args.seed, "1"));
}

void add_engine(std::vector<Option>& options, LoadArgs& args) {
  options.push_back(make_option("--kv-memory", "SIZE", "Memory of the KV cache: 512M, 2G, 1.5GB",
                                &args.kv_memory, "-np of the longest conversations"));
  options.push_back(make_option(
      "--no-prefix-cache", "", "Compute again what prompts have in common", &args.no_prefix_cache));
  options.push_back(counted("--max-wait-ms", "N",
                            "A request may wait so long for others to begin with it",
                            &args.max_wait_ms, "0", 0, 3'600'000));
  options.push_back(counted("--max-slowdown", "X",
                            "Prompts may make a step of those that generate X times as long",
                            &args.max_slowdown, "0, no bound", 0, 1e6));
}

}  // namespace

std::vector<Option> load_options(LoadArgs& args) {
  std::vector<Option> options;
  add_load_shape(options, args);
  for (Option& option : options) option.group = "Load";
  const size_t num_shape = options.size();
  add_requests(options, args);
  for (size_t i = num_shape; i < options.size(); ++i) options[i].group = "Requests of a load";
  const size_t num_requests = options.size();
  add_engine(options, args);
  for (size_t i = num_requests; i < options.size(); ++i) options[i].group = "Engine of a load";
  return options;
}

std::string first_load_option(const LoadArgs& args) {
  const std::pair<const char*, bool> given[] = {
      {"--rate", args.rates.has_value()},
      {"--concurrency", !args.concurrencies.empty()},
      {"--requests", args.requests.has_value()},
      {"--duration", args.seconds.has_value()},
      {"--warmup", args.warm_up.has_value()},
      {"--static-batching", args.static_batching},
      {"--slo", args.slo.has_value()},
      {"--input-len", args.inputs.has_value()},
      {"--output-len", args.outputs.has_value()},
      {"--prefix-len", !args.prefix_tokens.empty()},
      {"--prefixes", args.prefixes.has_value()},
      {"--turns", args.turns.has_value()},
      {"--temp", args.temperature.has_value()},
      {"--seed", args.seed.has_value()},
      {"--kv-memory", args.kv_memory.has_value()},
      {"--no-prefix-cache", args.no_prefix_cache},
      {"--max-wait-ms", args.max_wait_ms.has_value()},
      {"--no-ideal", args.no_ideal},
      {"--max-slowdown", args.max_slowdown.has_value()},
  };
  for (const auto& [name, is_given] : given) {
    if (is_given) return name;
  }
  return "";
}

Result<std::vector<LoadPlan>> load_plans(const LoadArgs& args,
                                         const std::vector<int64_t>& max_sequences) {
  HEADRACE_ASSIGN(const LoadPlan common, common_plan(args));
  HEADRACE_ASSIGN(const auto inputs, lengths("--input-len", args.inputs, kDefaultInput));
  HEADRACE_ASSIGN(const auto outputs, lengths("--output-len", args.outputs, kDefaultOutput));
  std::vector<LoadPlan> out;
  for (const LoadLength& input : inputs) {
    for (const LoadLength& output : outputs) {
      for (const int64_t prefix : given_or<int64_t>(args.prefix_tokens, 0)) {
        for (const int64_t sequences : given_or<int64_t>(max_sequences, 0)) {
          LoadPlan plan = common;
          plan.spec.input = input;
          plan.spec.output = output;
          plan.spec.prefix_tokens = prefix;
          plan.max_sequences = sequences;
          HEADRACE_ASSIGN(const auto loads, at_each_load(plan, args));
          for (const LoadPlan& load : loads) add_plans(out, load, args);
          if (out.size() > kMostPlans) {
            return bad_option(
                "--load", "these lists ask for more than " + std::to_string(kMostPlans) + " loads");
          }
        }
      }
    }
  }
  return out;
}

}  // namespace headrace::cli
