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

struct State {
  std::string name;
  bool yes = false;
  bool json = false;
};

bool agrees(const StoredModel& model) {
  std::fprintf(stderr, "remove %s (%s)? [y/N] ", printable(model.path).c_str(),
               size_text(model.size_bytes).c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int run(const State& state) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), state.json);
  const auto model = store->find(state.name);
  if (model && !state.yes) {
    if (!is_terminal(StandardStream::input)) {
      return fail_usage(
          "rm",
          Error{ErrorCode::invalid_argument, "without a terminal to ask on, give --yes", "", ""},
          state.json);
    }
    if (!agrees(*model)) {
      return fail(Error{ErrorCode::cancelled, "nothing was removed", state.name, ""}, state.json);
    }
  }
  const auto removed = store->remove(state.name);
  if (!removed) return fail(removed.error(), state.json);
  if (state.json) {
    print_json({{"name", state.name}, {"removed", true}, {"size_bytes", model->size_bytes}});
  } else {
    print("removed " + printable(state.name) + ", " + size_text(model->size_bytes) + " freed\n");
  }
  return kDone;
}

}  // namespace

Command rm_command() {
  auto state = std::make_shared<State>();
  Command command;
  command.name = "rm";
  command.summary = "Remove a model from the local store";
  command.description =
      "Deletes the model's file from the store. Asks first on a terminal; elsewhere --yes is "
      "needed.";
  command.options = {{.names = "name",
                      .help = "The model's name",
                      .target = &state->name,
                      .required = true,
                      .is_model = true},
                     {.names = "-y,--yes", .help = "Do not ask", .target = &state->yes},
                     json_option(&state->json)};
  command.examples = {{"headrace rm gemma3-270m", ""}};
  command.run = [state = state.get()] { return run(*state); };
  command.state = std::move(state);
  return command;
}

}  // namespace headrace::cli
