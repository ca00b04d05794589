#include "cli/parser.h"

#include <gtest/gtest.h>

#include "cli/argv.h"
#include "cli/sample_command.h"

namespace headrace::cli {
namespace {

using Args = std::vector<std::string>;

/// Parses, and expects it to work.
SampleState parse(const Args& args) {
  const Sample sample = make_sample();
  const auto parsed = parse_args(sample.command, args);
  EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
  return *sample.state;
}

/// Parses, and expects "where: message (hint)".
std::string fault(const Args& args) {
  const auto parsed = parse_args(make_sample().command, args);
  EXPECT_FALSE(parsed.ok());
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
  return parsed.error().to_string();
}

TEST(Parser, StoresEveryKindOfValue) {
  const auto state = parse({"-m", "a.gguf", "-n", "8", "--temp=0.5", "--top-p", "1e-1", "--seed",
                            "18446744073709551615", "--system", "f", "--raw", "--logit-bias", "1=2",
                            "--logit-bias=3=4", "--kv-type", "f32", "words of text"});
  EXPECT_EQ(state.model, "a.gguf");
  EXPECT_EQ(state.max_tokens, 8);
  EXPECT_EQ(state.temperature, 0.5);
  EXPECT_EQ(state.top_p, 0.1);
  EXPECT_EQ(state.seed, 18446744073709551615ULL);
  EXPECT_EQ(state.system, "f");
  EXPECT_TRUE(state.raw);
  EXPECT_EQ(state.bias, (Args{"1=2", "3=4"}));
  EXPECT_EQ(state.kv_type, "f32");
  EXPECT_EQ(state.text, "words of text");
}

TEST(Parser, WhatIsNotGivenStaysAsItWas) {
  const auto state = parse({});
  EXPECT_EQ(state.max_tokens, -1);
  EXPECT_EQ(state.temperature, 1);
  EXPECT_FALSE(state.top_p || state.top_k || state.seed || state.system);
  EXPECT_FALSE(state.raw);
}

TEST(Parser, ValuesMayLookLikeAnything) {
  for (const std::string value :
       {"",    "-x", "--temp", "-1", "--", "[1,2]", "[]",  "{}", "%%", "++",
        "a=b", "=",  "-",      "'",  "\"", "\n",    "a,b", "/x", "ä",  "\xff"}) {
    EXPECT_EQ(parse({"--prompt", value}).prompt, value);
    EXPECT_EQ(parse({"-p", value}).prompt, value);
    EXPECT_EQ(parse({"--prompt=" + value}).prompt, value);
    EXPECT_EQ(parse({"--", value}).text, value);
    EXPECT_EQ(parse({"--logit-bias", value}).bias, Args{value});
  }
  EXPECT_EQ(parse({"++"}).text, "++");
  EXPECT_EQ(parse({"-"}).text, "-");
  EXPECT_EQ(parse({"-5"}).text, "-5");
  EXPECT_EQ(parse({"-n", "-1"}).max_tokens, -1);
  EXPECT_EQ(parse({"-n", "+5"}).max_tokens, 5);
}

TEST(Parser, ListsOfNumbers) {
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(parse({"-d", "0,4096"}).depths, (Numbers{0, 4096}));
  EXPECT_EQ(parse({"-d", "5", "--depth=7,8"}).depths, (Numbers{5, 7, 8}));
  EXPECT_EQ(parse({"-d", "128-1024*2,3"}).depths, (Numbers{128, 256, 512, 1024, 3}));
  EXPECT_EQ(parse({"-d", "0-1000+300"}).depths, (Numbers{0, 300, 600, 900}));
  EXPECT_EQ(parse({"-d", "4-6"}).depths, (Numbers{4, 5, 6}));
  EXPECT_EQ(parse({}).depths, Numbers{});
  for (const std::string text : {"", ",", "1,", "1,,2", "-1", "x", "1-", "9-1", "0-8*2", "1-8*1",
                                 "1-8+0", "1-100001", "1-8*", "1--8", "1 2", "0-100000"}) {
    EXPECT_NE(fault({"-d", text}).find("-d: "), std::string::npos) << text;
  }
}

TEST(Parser, ListsOfChoices) {
  EXPECT_EQ(parse({"-o", "json"}).formats, "json");
  EXPECT_EQ(parse({"-o", "md,json"}).formats, "md,json");
  EXPECT_NE(fault({"-o", "md,jsn"}).find("did you mean 'json'?"), std::string::npos);
  EXPECT_NE(fault({"-o", "md,"}).find("expected md or json"), std::string::npos);
}

TEST(Parser, TheLastOfTwoCounts) {
  EXPECT_EQ(parse({"--temp", "1", "--temp", "2"}).temperature, 2);
  EXPECT_EQ(parse({"--raw", "--raw"}).raw, true);
}

TEST(Parser, FlagsCanBeSwitchedOff) {
  EXPECT_TRUE(parse({"--raw=true"}).raw);
  EXPECT_TRUE(parse({"--no-raw", "--raw"}).raw);
  EXPECT_TRUE(parse({"--no-raw=false"}).raw);
  for (const Args& args :
       std::vector<Args>{{"--raw=false"}, {"--no-raw"}, {"--raw", "--no-raw"}, {"--no-raw=true"}}) {
    const Sample sample = make_sample();
    sample.state->raw = true;
    const auto parsed = parse_args(sample.command, args);
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_FALSE(sample.state->raw) << args.front();
  }
  // What has a value is no flag, and what is not there has no opposite.
  EXPECT_EQ(fault({"--no-temp"}).find("--no-temp: unknown option"), 0U);
  EXPECT_EQ(fault({"--no-such"}).find("--no-such: unknown option"), 0U);
}

TEST(Parser, AFlagThatSaysNoHasAnOpposite) {
  for (const char* name : {"--page", "--webui"}) {
    Sample sample = make_sample();
    bool no_page = true;
    sample.command.options.push_back({.names = "--no-page,--no-webui", .target = &no_page});
    const auto parsed = parse_args(sample.command, {name});
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_FALSE(no_page) << name;
    EXPECT_TRUE(parse_args(sample.command, {"--no-page"}).ok());
    EXPECT_TRUE(no_page);
  }
}

TEST(Parser, SpellingsOfOtherEngines) {
  EXPECT_EQ(parse({"-np", "4"}).parallel, 4);
  EXPECT_EQ(parse({"-np=4"}).parallel, 4);
  EXPECT_EQ(parse({"-n", "4"}).max_tokens, 4);
  EXPECT_EQ(parse({"-n4"}).max_tokens, 4);
  EXPECT_EQ(parse({"--n-predict", "4"}).max_tokens, 4);
  EXPECT_EQ(parse({"--max_tokens", "4"}).max_tokens, 4);
  EXPECT_EQ(parse({"--max-model-len", "99"}).context, 99);
  EXPECT_EQ(parse({"--max-model-len", "auto"}).context, 0);
  EXPECT_EQ(parse({"-c=auto"}).context, 0);
  EXPECT_EQ(parse({"--max_model_len=99"}).context, 99);
  EXPECT_EQ(parse({"--ctx-size", "99"}).context, 99);
  EXPECT_EQ(parse({"-ctk", "f32", "-ctv", "f32"}).kv_type, "f32");
  EXPECT_EQ(parse({"--temperature", "0"}).temperature, 0);
}

TEST(Parser, NamesWhatWasTyped) {
  const std::string rest = ": expected a whole number, got 'x'";
  for (const std::string name : {"-np", "--parallel", "--max-num-seqs", "--max_num_seqs"}) {
    EXPECT_EQ(fault({name, "x"}), name + rest);
    EXPECT_EQ(fault({name + "=x"}), name + rest);
  }
}

TEST(Parser, TwoSpellingsMustAgree) {
  EXPECT_EQ(fault({"-ctk", "f32", "-ctv", "f16"}),
            "-ctv: 'f16' contradicts -ctk 'f32': here both are one setting");
}

TEST(Parser, ForeignFlagsWithoutACounterpartWarn) {
  const Sample sample = make_sample();
  const auto parsed = parse_args(
      sample.command, {"-ngl", "99", "-fa", "--mlock", "-fa", "on", "--no-mmap", "the text"});
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(parsed->warnings.size(), 5u);
  EXPECT_EQ(sample.state->text, "the text");
  const auto more =
      parse_args(sample.command,
                 {"-cb", "--jinja", "--metrics", "--slots", "--enable-prefix-caching", "--dtype",
                  "auto", "--tensor-parallel-size", "1", "--timeout", "600", "the text"});
  ASSERT_TRUE(more.ok()) << more.error().to_string();
  EXPECT_EQ(more->warnings.size(), 8u);
  EXPECT_TRUE(parse_args(sample.command, {"-tp=1", "--tensor_parallel_size=1", "x"}).ok());
  EXPECT_NE(fault({"--tensor-parallel-size", "2"}).find("one process"), std::string::npos);
  EXPECT_NE(fault({"--tensor-parallel-size=2"}).find("one process"), std::string::npos);
  EXPECT_NE(fault({"-hf", "owner/name"}).find("headrace pull"), std::string::npos);
}

TEST(Parser, UnknownOptionsGetTheNearest) {
  EXPECT_EQ(fault({"--tmp", "1"}), "--tmp: unknown option (did you mean --temp?)");
  EXPECT_EQ(fault({"--promt=x"}), "--promt: unknown option (did you mean --prompt?)");
  EXPECT_EQ(fault({"--zzzzzzz"}), "--zzzzzzz: unknown option");
  EXPECT_EQ(fault({"-z"}).find("-z: unknown option"), 0u);
  EXPECT_EQ(fault({"--he\x1b[31mlp"}).find('\x1b'), std::string::npos);
}

TEST(Parser, BadValuesSayWhatWasExpected) {
  EXPECT_EQ(fault({"--temp", "x"}), "--temp: expected a number of at least 0, got 'x'");
  EXPECT_EQ(fault({"--temp", "-1"}), "--temp: expected a number of at least 0, got '-1'");
  EXPECT_EQ(fault({"--temp", "nan"}), "--temp: expected a finite number of at least 0, got 'nan'");
  EXPECT_EQ(fault({"--temp", "inf"}), "--temp: expected a finite number of at least 0, got 'inf'");
  EXPECT_EQ(fault({"--temp", ""}), "--temp: expected a number of at least 0, got ''");
  EXPECT_EQ(fault({"--top-p", "1.5"}), "--top-p: expected a number from 0 to 1, got '1.5'");
  EXPECT_EQ(fault({"--top-k", "1.5"}), "--top-k: expected a whole number, got '1.5'");
  EXPECT_EQ(fault({"--top-k", "0x10"}), "--top-k: expected a whole number, got '0x10'");
  EXPECT_EQ(fault({"--top-k", "--seed"}), "--top-k: expected a whole number, got '--seed'");
  EXPECT_EQ(fault({"--seed", "-1"}), "--seed: expected a whole number, got '-1'");
  EXPECT_EQ(fault({"--top-k", "99999999999999999999"}),
            "--top-k: expected a whole number that fits in 64 bits, got '99999999999999999999'");
  EXPECT_EQ(fault({"--kv-type", "f61"}),
            "--kv-type: expected f16 or f32, got 'f61' (did you mean 'f16'?)");
  EXPECT_EQ(fault({"--raw=1"}), "--raw: takes no value but true or false");
  EXPECT_EQ(fault({"--raw="}), "--raw: takes no value but true or false");
  EXPECT_EQ(fault({"--no-raw=1"}), "--no-raw: takes no value but true or false");
  EXPECT_EQ(fault({"-m", ""}), "-m: expected a file or a model's name, got ''");
  EXPECT_EQ(fault({"--system="}), "--system: expected a file's name, got ''");
}

TEST(Parser, MissingValuesAndArguments) {
  EXPECT_EQ(fault({"--temp"}), "--temp: expected T");
  EXPECT_EQ(fault({"-np"}), "-np: expected N");
  EXPECT_EQ(fault({"one", "two"}), "unexpected argument 'two' (put a value with spaces in quotes)");
  Sample sample = make_sample();
  sample.command.options[0].required = true;
  EXPECT_EQ(parse_args(sample.command, {}).error().to_string(), "TEXT: missing argument");
  sample.command.options[0].required = false;
  sample.command.options[1].required = true;
  EXPECT_EQ(parse_args(sample.command, {}).error().to_string(), "--model: this option is required");
}

TEST(Parser, HelpIsGivenWhateverElseIsWrong) {
  for (const Args& args : std::vector<Args>{{"--help"},
                                            {"-h"},
                                            {"--zzz", "--help"},
                                            {"--raw=1", "-h"},
                                            {"a", "b", "c", "-h"},
                                            {"--temp", "x", "--help"}}) {
    const Sample sample = make_sample();
    const auto parsed = parse_args(sample.command, args);
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_TRUE(parsed->help);
  }
  EXPECT_EQ(parse({"-p", "--help"}).prompt, "--help");
  EXPECT_EQ(parse({"--", "--help"}).text, "--help");
}

TEST(Argv, EverySpellingGroupIsDisjoint) {
  std::vector<std::string> seen;
  for (const auto& group : spelling_groups()) {
    for (const auto& name : group) {
      EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0) << name;
      seen.push_back(name);
    }
  }
}

}  // namespace
}  // namespace headrace::cli
