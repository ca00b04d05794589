// headrace list: the models of the store and of the hub's cache, and those that can be pulled.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_json.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct ListArgs {
  bool json = false;
  bool names = false;
};

int print_as_json(const ModelStore& store, const std::vector<StoredModel>& models,
                  const std::vector<StoredModel>& cached) {
  nlohmann::json stored = nlohmann::json::array();
  for (const auto& model : models) stored.push_back(model_json(model, store));
  nlohmann::json in_cache = nlohmann::json::array();
  for (const auto& model : cached) in_cache.push_back(model_json(model, store));
  nlohmann::json available = nlohmann::json::array();
  for (const auto& entry : store.catalog()) {
    available.push_back({{"name", entry.name},
                         {"description", entry.description},
                         {"size_bytes", entry.size_bytes},
                         {"license", entry.license},
                         {"stored", store.find(entry.name).has_value()}});
  }
  print_json({{"folder", store.root()},
              {"models", stored},
              {"hub_cache", in_cache},
              {"catalog", available}});
  return kDone;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : printable(text, 40);
}

/// Rows of equal columns; the last column keeps its length.
void print_rows(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      line += i == 1
                  ? fmt::format("{:>{}}  ", row[i], widths[i])
                  : fmt::format("{:<{}}{}", row[i], is_last ? 0 : widths[i], is_last ? "" : "  ");
    }
    print(line + "\n");
  }
}

std::vector<std::string> row_of(const StoredModel& model) {
  std::string source = or_dash(model.source);
  if (model.is_in_hub_cache && !model.is_ours) source += " (in the hub's cache)";
  return {printable(model.name),       size_text(model.size_bytes), or_dash(model.format),
          or_dash(model.quantization), or_dash(model.license),      source};
}

int list_models(const ListArgs& args) {
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const auto models = store->list();
  const auto cached = store->list_cached();
  if (args.json) return print_as_json(*store, models, cached);
  if (args.names) {
    for (const auto& model : models) print(printable(model.name) + "\n");
    for (const auto& model : cached) print(printable(model.name) + "\n");
    return kDone;
  }
  if (models.empty()) print("no models in " + printable(store->root()) + "\n");
  std::vector<std::vector<std::string>> rows;
  if (!models.empty() || !cached.empty()) {
    rows.push_back({"name", "size", "format", "quantisation", "licence", "source"});
  }
  for (const auto& model : models) rows.push_back(row_of(model));
  for (const auto& model : cached) rows.push_back(row_of(model));
  print_rows(rows);
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
      "Shows what was pulled and what else is in the store's folder, then the usable models that "
      "other tools have put into the hub's cache, then those that `headrace pull` can get by name. "
      "Each has a name for -m. Every .gguf file and every Hugging Face directory in the store's "
      "folder is a model; its name is the file's without the ending. The folder is "
      "$HEADRACE_HOME/models, else $XDG_DATA_HOME/headrace/models, else "
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
