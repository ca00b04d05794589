// headrace selftest: proves on this machine that the results are right.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/selftest.h"
#include "base/cpu_features.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct SelftestArgs {
  ModelArgs model;
  std::string isa;
  bool json = false;
};

nlohmann::json checks_json(const std::vector<SelftestCheck>& checks) {
  auto out = nlohmann::json::array();
  for (const SelftestCheck& check : checks) {
    out.push_back({{"name", check.name},
                   {"ok", check.ok},
                   {"skipped", check.skipped},
                   {"detail", check.detail}});
  }
  return out;
}

void print_check(const SelftestCheck& check) {
  const bool colors = colors_on_stdout();
  const std::string mark = check.skipped ? styled("skipped", Style::yellow, colors)
                           : check.ok    ? styled("ok     ", Style::green, colors)
                                         : styled("FAILED ", Style::red, colors);
  print(fmt::format("{} {}: {}\n", mark, check.name, printable(check.detail)));
  std::fflush(stdout);
}

Result<int> run_checked(const SelftestArgs& args) {
  SelftestOptions options;
  if (!args.isa.empty()) {
    auto isa = choose_isa(args.isa);
    if (!isa.ok()) return std::move(isa).error().at("--isa");
    options.isas = {*isa};
  }
  auto path = find_model(args.model, false);
  if (path.ok()) {
    options.model_path = *path;
  } else if (!args.model.model.empty()) {
    return std::move(path).error();
  }
  const auto checks = run_selftest(options, [&](const SelftestCheck& check) {
    if (!args.json) print_check(check);
  });
  const auto failed =
      std::count_if(checks.begin(), checks.end(), [](const auto& check) { return !check.ok; });
  if (args.json) {
    print_json({{"checks", checks_json(checks)}, {"processor", cpu_features().model_name}});
  } else {
    print(fmt::format("{} checks on {}, {} failed\n", checks.size(),
                      printable(cpu_features().model_name), failed));
  }
  return failed == 0 ? kDone : kFailed;
}

}  // namespace

Command selftest_command() {
  auto args = std::make_shared<SelftestArgs>();
  Command command;
  command.name = "selftest";
  command.summary = "Prove that this machine computes right";
  command.description =
      "Checks the kernels of every instruction set against double arithmetic, that results do not "
      "depend on company, pieces or threads (bit for bit), that a model agrees with the reference "
      "path, and one known answer. Uses the default model if it is in the store, and leaves the "
      "checks of a model out otherwise. Exit code 1 if a check failed.";
  auto& options = command.options;
  options.push_back(model_option(args->model));
  options.push_back(make_option("--isa", "NAME", "Check only this instruction set", &args->isa,
                                "all of this machine"));
  options.back().choices = isa_names();
  options.push_back(json_option(&args->json));
  command.examples = {
      {"headrace selftest", "everything"},
      {"headrace selftest --isa avx2 --json", "one instruction set, as JSON"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
