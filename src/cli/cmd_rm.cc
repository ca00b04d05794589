// headrace rm: removes a model from the store.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct RmArgs {
  std::string name;
  bool yes = false;
  bool cache = false;
  bool json = false;
};

bool agrees(const StoredModel& model) {
  std::fprintf(stderr, "remove %s (%s)? [y/N] ", printable(model.path).c_str(),
               size_text(model.size_bytes).c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int remove_model(const RmArgs& args) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const auto model = store->resolve(args.name);
  if (model.ok() && !args.yes) {
    if (!is_terminal(StandardStream::input)) {
      return fail_usage(
          "rm",
          Error{ErrorCode::invalid_argument, "without a terminal to ask on, give --yes", "", ""},
          args.json);
    }
    if (!agrees(*model)) {
      return fail(Error{ErrorCode::cancelled, "nothing was removed", args.name, ""}, args.json);
    }
  }
  const auto freed = store->remove(args.name, args.cache);
  if (!freed) return fail(freed.error(), args.json);
  if (args.json) {
    print_json({{"name", model->name}, {"removed", true}, {"size_bytes", *freed}});
  } else {
    print("removed " + printable(model->name) + ", " + size_text(*freed) + " freed\n");
  }
  return kDone;
}

}  // namespace

Command rm_command() {
  auto args = std::make_shared<RmArgs>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a model from the local store";
  command.description =
      "Deletes the model's files from the store, or from the hub's cache where it was pulled from "
      "there. What another tool has put into that cache stays, unless --cache is given, and so do "
      "files that another model of the store needs. Asks first on a terminal; elsewhere --yes is "
      "needed.";
  command.options = {{.names = "name",
                      .help = "The model's name",
                      .target = &args->name,
                      .required = true,
                      .is_model = true},
                     {.names = "-y,--yes", .help = "Do not ask", .target = &args->yes},
                     {.names = "--cache",
                      .help = "Also what another tool has put into the hub's cache",
                      .target = &args->cache},
                     json_option(&args->json)};
  command.examples = {{"headrace rm gemma3-270m", ""}};
  command.run = [args = args.get()] { return remove_model(*args); };
  command.state = std::move(args);
  return command;
}

}  // namespace headrace::cli
