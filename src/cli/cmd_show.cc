// headrace show: where a model is, its size and its licence.
#include <nlohmann/json.hpp>

#include "base/nearest_word.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct ShowArgs {
  std::string name = ModelStore::default_model().name;
  bool json = false;
};

Error unknown(const ModelStore& store, const std::string& name) {
  Error error{ErrorCode::not_found, "no model of this name in the store or the catalogue", name,
              "'headrace list' shows them all"};
  std::vector<std::string> known;
  for (const auto& model : store.list()) known.push_back(model.name);
  for (const auto& entry : ModelStore::catalog()) known.push_back(entry.name);
  const std::string meant = nearest_word(name, known);
  if (!meant.empty()) error.hint = "did you mean " + meant + "?";
  return error;
}

int show_model(const ShowArgs& args) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const auto stored = store->find(args.name);
  const CatalogEntry* entry = store->catalog_entry(args.name);
  if (!stored && entry == nullptr) return fail(unknown(*store, args.name), args.json);
  nlohmann::json value = {{"name", args.name}, {"stored", stored.has_value()}};
  std::string text = "name:        " + printable(args.name) + "\n";
  if (entry != nullptr) {
    value["description"] = entry->description;
    value["license"] = entry->license;
    value["license_note"] = entry->license_note;
    value["sha256"] = entry->sha256;
    text += "description: " + entry->description + "\n";
    text += "licence:     " + entry->license + "\n";
    if (!entry->license_note.empty()) {
      text += "             " + wrapped(entry->license_note, 80, 13) + "\n";
    }
  }
  const uint64_t size = stored ? stored->size_bytes : entry->size_bytes;
  value["size_bytes"] = size;
  text += "size:        " + size_text(size) + "\n";
  if (stored) {
    value["path"] = stored->path;
    text += "file:        " + printable(stored->path) + "\n";
  } else {
    text += "file:        not here yet: headrace pull " + args.name + "\n";
  }
  if (args.json) {
    print_json(value);
  } else {
    print(text);
  }
  return kDone;
}

}  // namespace

Command show_command() {
  auto args = std::make_shared<ShowArgs>();
  Command command;
  command.name = "show";
  command.summary = "Show a model's file, size and licence";
  command.description =
      "What the store and the catalogue know of a model. For what is in its file, see "
      "`headrace inspect`.";
  command.options = {{.names = "name",
                      .help = "The model's name",
                      .target = &args->name,
                      .default_text = args->name,
                      .is_model = true},
                     json_option(&args->json)};
  command.examples = {{"headrace show gemma3-270m", ""}};
  command.run = [args = args.get()] { return show_model(*args); };
  command.state = std::move(args);
  return command;
}

}  // namespace headrace::cli
