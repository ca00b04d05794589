// A command for tests, with an option of every kind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace headrace::cli {

struct SampleState {
  std::string model;
  std::string prompt;
  std::string text;  ///< positional
  int64_t max_tokens = -1;
  int64_t context = 0;
  double temperature = 1;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
  std::optional<std::string> system;
  std::string kv_type = "f16";
  std::vector<std::string> bias;
  std::vector<int64_t> depths;
  std::string formats;
  int64_t parallel = 1;
  bool raw = false;
  bool json = false;
};

struct Sample {
  std::shared_ptr<SampleState> state = std::make_shared<SampleState>();
  Command command;
};

inline Sample make_sample() {
  Sample sample;
  SampleState& s = *sample.state;
  Command& command = sample.command;
  command.name = "sample";
  command.summary = "Do something with a model";
  command.description =
      "A first paragraph. It isn't long.\n\n  shaped line\n\n.dotted 'text' \\ end";
  command.options = {
      {.names = "text", .help = "The text", .target = &s.text},
      {.names = "-m,--model",
       .value_name = "MODEL",
       .help = "The model",
       .target = &s.model,
       .is_model = true},
      {.names = "-p,--prompt", .value_name = "TEXT", .help = "The prompt", .target = &s.prompt},
      {.names = "-n,--max-tokens",
       .value_name = "N",
       .help = "At most N tokens",
       .target = &s.max_tokens,
       .default_text = "no limit",
       .group = "Sampling",
       .min_value = -1},
      {.names = "-c,--context",
       .value_name = "N",
       .help = "Tokens of context [at most]: all",
       .target = &s.context,
       .takes_auto = true},
      {.names = "--temp",
       .value_name = "T",
       .help = "The temperature",
       .target = &s.temperature,
       .default_text = "1",
       .group = "Sampling",
       .min_value = 0},
      {.names = "--top-p",
       .value_name = "P",
       .help = "The nucleus",
       .target = &s.top_p,
       .group = "Sampling",
       .min_value = 0,
       .max_value = 1},
      {.names = "--top-k", .value_name = "K", .help = "The best K", .target = &s.top_k},
      {.names = "-s,--seed", .value_name = "S", .help = "The user's seed", .target = &s.seed},
      {.names = "--system",
       .value_name = "FILE",
       .help = "A file",
       .target = &s.system,
       .is_path = true},
      {.names = "--kv-type",
       .value_name = "TYPE",
       .help = "Type of the cache",
       .target = &s.kv_type,
       .default_text = "f16",
       .choices = {"f16", "f32"}},
      {.names = "--logit-bias", .value_name = "ID=V", .help = "A bias", .target = &s.bias},
      {.names = "-d,--depth",
       .value_name = "N[,N...]",
       .help = "Some depths",
       .target = &s.depths,
       .min_value = 0,
       .max_value = 100000},
      {.names = "-o,--output",
       .value_name = "FORMAT",
       .help = "Some formats",
       .target = &s.formats,
       .choices = {"md", "json"},
       .is_list = true},
      {.names = "-np,--parallel", .value_name = "N", .help = "Sequences", .target = &s.parallel},
      {.names = "--raw", .help = "No template", .target = &s.raw},
      json_option(&s.json),
  };
  command.examples = {{"headrace sample -p \"x\"", "an example"}};
  command.run = [] { return kDone; };
  command.state = sample.state;
  return sample;
}

}  // namespace headrace::cli
