// headrace list: the models of the store, and those that can be pulled.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct ListArgs {
  bool json = false;
  bool names = false;
};

int print_as_json(const ModelStore& store, const std::vector<StoredModel>& models) {
  nlohmann::json stored = nlohmann::json::array();
  for (const auto& model : models) {
    stored.push_back(
        {{"name", model.name}, {"path", model.path}, {"size_bytes", model.size_bytes}});
  }
  nlohmann::json available = nlohmann::json::array();
  for (const auto& entry : ModelStore::catalog()) {
    available.push_back({{"name", entry.name},
                         {"description", entry.description},
                         {"size_bytes", entry.size_bytes},
                         {"license", entry.license},
                         {"stored", store.find(entry.name).has_value()}});
  }
  print_json({{"folder", store.root()}, {"models", stored}, {"catalog", available}});
  return kDone;
}

int list_models(const ListArgs& args) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const auto models = store->list();
  if (args.json) return print_as_json(*store, models);
  if (args.names) {
    for (const auto& model : models) print(printable(model.name) + "\n");
    return kDone;
  }
  if (models.empty()) print("no models in " + printable(store->root()) + "\n");
  for (const auto& model : models) {
    print(fmt::format("{:<20} {:>10}  {}\n", printable(model.name), size_text(model.size_bytes),
                      printable(model.path)));
  }
  for (const auto& entry : ModelStore::catalog()) {
    if (store->find(entry.name)) continue;
    print(fmt::format("{:<20} {:>10}  not here yet: headrace pull {}\n", entry.name,
                      size_text(entry.size_bytes), entry.name));
  }
  return kDone;
}

}  // namespace

Command list_command() {
  auto args = std::make_shared<ListArgs>();
  Command command;
  command.name = "list";
  command.summary = "List the models of the local store";
  command.description =
      "Shows the models of the store with their sizes, then those that `headrace pull` can get. "
      "Every .gguf file in the store's folder is a model; its name is the file's without the "
      "ending. The folder is $HEADRACE_HOME/models, else $XDG_DATA_HOME/headrace/models, else "
      "~/.local/share/headrace/models.";
  command.options = {{.names = "--names",
                      .help = "Print the names only, one a line",
                      .target = &args->names,
                      .group = "Output"},
                     json_option(&args->json)};
  command.examples = {{"headrace list", ""}, {"headrace list --json", "for programs"}};
  command.run = [args = args.get()] { return list_models(*args); };
  command.state = std::move(args);
  return command;
}

}  // namespace headrace::cli
