// headrace show: where a model is, what it is made of and its licence.
#include <nlohmann/json.hpp>

#include "base/nearest_word.h"
#include "cli/commands.h"
#include "cli/model_json.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct ShowArgs {
  std::string name = ModelStore::default_model().name;
  bool json = false;
};

/// Where the name is one, and no reference that says itself what is wrong.
Error unknown(const ModelStore& store, const std::string& name, const Error& error) {
  if (name.find_first_of("/:") != std::string::npos) return error;
  Error unknown{ErrorCode::not_found, "no model of this name in the store or the catalogue", name,
                "'headrace list' shows them all"};
  std::vector<std::string> known;
  for (const auto& model : store.list()) known.push_back(model.name);
  for (const auto& entry : ModelStore::catalog()) known.push_back(entry.name);
  const std::string meant = nearest_word(name, known);
  if (!meant.empty()) unknown.hint = "did you mean " + meant + "?";
  return unknown;
}

std::string line(const std::string& label, const std::string& value) {
  if (value.empty()) return "";
  std::string text = label + ":";
  text.resize(14, ' ');
  return text + value + "\n";
}

std::string catalog_lines(const CatalogEntry& entry) {
  std::string text = line("description", entry.description) + line("licence", entry.license);
  if (!entry.license_note.empty()) {
    text += std::string(14, ' ') + wrapped(entry.license_note, 80, 14) + "\n";
  }
  return text;
}

std::string model_lines(const StoredModel& model) {
  std::string text = line("size", size_text(model.size_bytes));
  text += line("format", model.format) + line("quantisation", model.quantization);
  text += line("source", printable(model.source)) + line("commit", model.commit);
  text += line(model.format == "gguf" ? "file" : "folder", printable(model.path));
  const bool is_told =
      model.files.size() > 1 || (model.files.size() == 1 && !model.files.front().sha256.empty());
  if (!is_told) return text;
  text += "files:\n";
  for (const RecordedFile& file : model.files) {
    text += "  " + printable(file.path) + "  " + size_text(file.size_bytes);
    if (!file.sha256.empty()) text += "  sha256 " + printable(file.sha256);
    text += "\n";
  }
  return text;
}

/// Of a model of the catalogue that is not here.
int show_available(const CatalogEntry& entry, bool json) {
  if (json) {
    print_json({{"name", entry.name},
                {"stored", false},
                {"description", entry.description},
                {"license", entry.license},
                {"license_note", entry.license_note},
                {"sha256", entry.sha256},
                {"size_bytes", entry.size_bytes}});
    return kDone;
  }
  print(line("name", entry.name) + catalog_lines(entry) +
        line("size", size_text(entry.size_bytes)) +
        line("file", "not here yet: headrace pull " + entry.name));
  return kDone;
}

int show_model(const ShowArgs& args) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const auto model = store->resolve(args.name);
  const CatalogEntry* entry = store->catalog_entry(model.ok() ? model->name : args.name);
  if (!model.ok() && entry != nullptr) return show_available(*entry, args.json);
  if (!model.ok()) return fail(unknown(*store, args.name, model.error()), args.json);
  if (args.json) {
    nlohmann::json value = model_json(*model, *store);
    value["stored"] = true;
    if (entry != nullptr) value["description"] = entry->description;
    print_json(value);
    return kDone;
  }
  const std::string about =
      entry != nullptr ? catalog_lines(*entry) : line("licence", printable(model->license));
  print(line("name", printable(model->name)) + about + model_lines(*model));
  return kDone;
}

}  // namespace

Command show_command() {
  auto args = std::make_shared<ShowArgs>();
  Command command;
  command.name = "show";
  command.summary = "Show a model's files, checksums and licence";
  command.description =
      "What the store, the hub's cache and the catalogue know of a model. For what is in its file, "
      "see `headrace inspect`.";
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
