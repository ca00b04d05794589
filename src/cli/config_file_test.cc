// Every kind of option from a file, each fault with its line, and that what is printed is read
// back.
#include "cli/config_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/parser.h"
#include "cli/sample_command.h"

namespace headrace::cli {
namespace {

bool nothing_given(const Option& /*option*/) {
  return false;
}

SampleState state_of(const std::string& text) {
  const Sample sample = make_sample();
  const auto applied = apply_config(sample.command, text, "a.toml", nothing_given);
  EXPECT_TRUE(applied.ok()) << applied.error().to_string();
  return *sample.state;
}

std::string fault_of(const std::string& text) {
  const auto applied = apply_config(make_sample().command, text, "a.toml", nothing_given);
  EXPECT_FALSE(applied.ok()) << text;
  return applied.ok() ? "" : applied.error().to_string();
}

/// A file that goes with the object.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) : path_(testing::TempDir() + "config_test.toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Sample with_config() {
  Sample sample = make_sample();
  auto path = std::make_shared<std::string>();
  sample.command.options.push_back(
      {.names = "--config", .value_name = "FILE", .target = path.get(), .is_config = true});
  sample.command.state =
      std::make_shared<std::pair<std::shared_ptr<SampleState>, std::shared_ptr<std::string>>>(
          sample.state, path);
  return sample;
}

TEST(ConfigFile, HasEveryKindOfOption) {
  const auto state = state_of(R"(
model = "a.gguf"     # a comment
max-tokens = 8
temp = 0.5
top-p = 1
top-k = 40
seed = 7
system = "f"
kv-type = "f32"
logit-bias = ["1=2", "3=4"]
depth = [1, 2]
output = "md,json"
max-sequences = 4
context = "auto"
raw = true
)");
  EXPECT_EQ(state.model, "a.gguf");
  EXPECT_EQ(state.max_tokens, 8);
  EXPECT_EQ(state.temperature, 0.5);
  EXPECT_EQ(state.top_p, 1.0);
  EXPECT_EQ(state.top_k, 40);
  EXPECT_EQ(state.seed, 7U);
  EXPECT_EQ(state.system, "f");
  EXPECT_EQ(state.kv_type, "f32");
  EXPECT_EQ(state.bias, (std::vector<std::string>{"1=2", "3=4"}));
  EXPECT_EQ(state.depths, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(state.parallel, 4);
  EXPECT_EQ(state.context, 0);
  EXPECT_TRUE(state.raw);
}

TEST(ConfigFile, TakesOtherSpellings) {
  EXPECT_EQ(state_of("max_tokens = 3").max_tokens, 3);
  EXPECT_EQ(state_of("n-predict = 3").max_tokens, 3);
  EXPECT_EQ(state_of("n = 3").max_tokens, 3);
  EXPECT_EQ(state_of("logit-bias = \"1=2\"").bias, std::vector<std::string>{"1=2"});
  EXPECT_EQ(state_of("seed = \"18446744073709551615\"").seed, 18446744073709551615ULL);
  EXPECT_FALSE(state_of("raw = false").raw);
}

TEST(ConfigFile, FaultsNameTheLine) {
  EXPECT_EQ(fault_of("\n\nmax-token = 1"),
            "a.toml:3: max-token: unknown setting (did you mean max-tokens?)");
  EXPECT_EQ(fault_of("raw = true\nmax-tokens = \"8\""),
            "a.toml:2: max-tokens: expected a whole number without quotes");
  EXPECT_EQ(fault_of("max-tokens = 1.5"),
            "a.toml:1: max-tokens: expected a whole number without quotes");
  EXPECT_EQ(fault_of("max-tokens = -2"),
            "a.toml:1: max-tokens: expected a whole number of at least -1, got "
            "'-2'");
  EXPECT_EQ(fault_of("raw = 1"), "a.toml:1: raw: expected true or false");
  EXPECT_EQ(fault_of("kv-type = \"f31\""),
            "a.toml:1: kv-type: expected f16 or f32, got 'f31' (did you mean 'f32'?)");
  EXPECT_EQ(fault_of("temp = nan"),
            "a.toml:1: temp: expected a finite number of at least 0, got 'nan'");
  EXPECT_EQ(fault_of("system = [\"a\"]"), "a.toml:1: system: expected text in quotes");
  EXPECT_EQ(fault_of("logit-bias = [\"1=2\", 3]"),
            "a.toml:1: logit-bias: expected text in quotes, or a list of such");
  EXPECT_EQ(fault_of("temp = 1\ntemperature = 1"),
            "a.toml:2: temperature: is the same setting as temp");
  EXPECT_EQ(fault_of("text = \"x\""), "a.toml:1: text: unknown setting");
  EXPECT_EQ(fault_of("[server]\nport = 1"),
            "a.toml:1: server: there are no sections here (put all settings "
            "before the first [...])");
  EXPECT_NE(fault_of("raw = true\nmax-tokens = = 3").find("a.toml:2: "), std::string::npos);
  EXPECT_NE(fault_of("raw = true\nraw = true").find("a.toml:2: "), std::string::npos);
  EXPECT_NE(fault_of("system = \"\xff\"").find("a.toml:1: "), std::string::npos);
}

TEST(ConfigFile, TheCommandLineWins) {
  const ConfigFile file("max-tokens = 8\nlogit-bias = [\"1=2\"]\ntemp = 0.5\n");
  const Sample sample = with_config();
  const auto parsed =
      parse_args(sample.command, {"--config", file.path(), "-n", "3", "--logit-bias", "5=6"});
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(sample.state->max_tokens, 3);
  EXPECT_EQ(sample.state->bias, std::vector<std::string>{"5=6"});
  EXPECT_EQ(sample.state->temperature, 0.5);
}

TEST(ConfigFile, TheCommandLineSwitchesItsFlagsOff) {
  const ConfigFile file("raw = true\n");
  for (const char* off : {"--no-raw", "--raw=false"}) {
    const Sample sample = with_config();
    const auto parsed = parse_args(sample.command, {off, "--config", file.path()});
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_FALSE(sample.state->raw) << off;
  }
  const Sample sample = with_config();
  ASSERT_TRUE(parse_args(sample.command, {"--config", file.path()}).ok());
  EXPECT_TRUE(sample.state->raw);
}

TEST(ConfigFile, GivesWhatIsRequired) {
  const ConfigFile file("prompt = \"x\"\n");
  Sample sample = with_config();
  for (Option& option : sample.command.options) {
    if (option.names == "-p,--prompt") option.required = true;
  }
  EXPECT_FALSE(parse_args(sample.command, {}).ok());
  EXPECT_TRUE(parse_args(sample.command, {"--config", file.path()}).ok());
  EXPECT_EQ(sample.state->prompt, "x");
}

TEST(ConfigFile, FaultsOfTheFileAreFaultsOfTheCommandLine) {
  const ConfigFile file("config = \"b.toml\"\n");
  const auto parsed = parse_args(with_config().command, {"--config", file.path()});
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().to_string().find(":1: config: is for the command line alone"),
            std::string::npos)
      << parsed.error().to_string();
  EXPECT_FALSE(parse_args(with_config().command, {"--config", "/no/such/file"}).ok());
}

TEST(ConfigFile, WhatIsPrintedIsReadBack) {
  const Sample sample = make_sample();
  SampleState& state = *sample.state;
  state.model = "a \"b\" \\ \xc3\xa4\n.gguf";
  state.top_p = 0.1;
  state.seed = 18446744073709551615ULL;
  state.bias = {"1=2", "x'y"};
  state.depths = {1, 2};
  state.temperature = 2;
  state.raw = true;
  const std::string text = config_text(sample.command.options);
  const auto again = state_of(text);
  EXPECT_EQ(again.model, state.model) << text;
  EXPECT_EQ(again.top_p, state.top_p) << text;
  EXPECT_EQ(again.seed, state.seed);
  EXPECT_EQ(again.bias, state.bias);
  EXPECT_EQ(again.depths, state.depths);
  EXPECT_EQ(again.temperature, 2);
  EXPECT_TRUE(again.raw);
  EXPECT_FALSE(again.top_k);
  EXPECT_NE(text.find("context = \"auto\"\n"), std::string::npos) << text;
  state.context = 512;
  EXPECT_NE(config_text(sample.command.options).find("context = 512\n"), std::string::npos);
}

TEST(ConfigFile, SecretsAreNotPrinted) {
  Sample sample = make_sample();
  for (Option& option : sample.command.options) {
    option.is_secret = option.names == "--logit-bias";
  }
  sample.state->bias = {"hush", "hush2"};
  const std::string text = config_text(sample.command.options);
  EXPECT_EQ(text.find("hush"), std::string::npos);
  EXPECT_NE(text.find("# logit-bias: 2 given, not shown\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace headrace::cli
