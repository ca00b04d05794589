// headrace serve: answers requests over HTTP.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/model_bounds.h"
#include "app/model_files.h"
#include "app/open_models.h"
#include "app/sampling_defaults.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/end_signals.h"
#include "cli/lighter_models.h"
#include "cli/model_options.h"
#include "cli/parse_bytes.h"
#include "cli/report.h"
#include "cli/sampling_options.h"
#include "cli/serve_options.h"
#include "cli/served_model.h"
#include "cli/terminal_text.h"
#include "cli/version.h"
#include "server/log.h"
#include "server/server.h"

namespace headrace::cli {
namespace {

using server::ModelEntry;
using std::chrono::milliseconds;

constexpr milliseconds kLookAtSignals{20};
/// Of one request; see RequestLimits.
constexpr int64_t kMostPrompts = 2'048;
/// Unread events of a stream, besides those that wait in the server.
constexpr int64_t kMaxUnreadBytes = 64 << 10;

EngineOptions engine_options(const ServeArgs& args) {
  EngineOptions options;
  options.max_sequences = args.max_sequences;
  options.prefix_cache = !args.no_prefix_cache;
  options.max_wait_ms = args.max_wait_ms;
  options.max_slowdown = args.max_slowdown;
  // The server bounds requests. In the engine all of them wait until its next step, each with as
  // many prompts as one may have.
  options.max_waiting =
      std::clamp<int64_t>(args.max_queue + args.max_sequences + kMostPrompts, 1, 1 << 20);
  options.max_unread_bytes = kMaxUnreadBytes;
  if (!args.kv_memory.empty()) options.kv_bytes = *parse_bytes(args.kv_memory);
  return options;
}

std::string chat_template_source(const OpenedModel& opened) {
  if (!opened.chat_template) return "";
  if (!opened.options.chat_template.empty()) return opened.options.chat_template;
  const auto source = chat_template_of(*opened.checkpoint);
  return source.ok() ? source->value_or("") : "";
}

/// What a request gets from one opened model, its engine running.
Result<std::unique_ptr<ModelEntry>> entry_of(const ServeArgs& args,
                                             const std::shared_ptr<OpenedModel>& opened,
                                             std::shared_ptr<const ModelBounds> bounds) {
  std::vector<std::string> ignored_keys;
  const SamplingParams defaults = sampling_defaults(opened->checkpoint->metadata(), ignored_keys);
  for (const std::string& text : ignored_keys) warn(text);
  HEADRACE_ASSIGN(SamplingParams sampling,
                  sampling_of(args.sampling, defaults, opened->model->info().vocab_size));
  for (const std::string& text : sampling_warnings(args.sampling, sampling)) warn(text);
  auto served = served_model(*opened, std::move(sampling), stop_of(args.sampling));
  served.default_adapters.clear();  // the model's own name is that of the model without them
  HEADRACE_ASSIGN(served.dry_breakers, dry_breakers_of(args.sampling));
  auto engine = opened->start_engine(engine_options(args));
  if (!engine.ok()) {
    if (engine.error().where == "kv_bytes") engine.error().where = "--kv-memory";
    return std::move(engine).error();
  }
  served.max_context = (*engine)->max_context();
  served.answers_any_name = args.models.size() <= 1;
  HEADRACE_ASSIGN(const auto pairs, lighter_pairs(args.lighter_models));
  served.lighter_name = lighter_of(pairs, served.name);
  auto entry = std::make_unique<ModelEntry>();
  entry->served = std::make_shared<const api::ServedModel>(std::move(served));
  entry->keeps = opened;
  entry->engine = std::move(engine).value();
  entry->loaded_unix_seconds = SystemClock().unix_seconds();
  entry->max_sequences = args.max_sequences;
  entry->bounds = std::move(bounds);
  entry->chat_template = chat_template_source(*opened);
  return entry;
}

/// That the models of --lighter-model can stand in for each other.
Result<void> check_lighter(const ServeArgs& args, const OpenedModels& opened) {
  HEADRACE_ASSIGN(const auto pairs, lighter_pairs(args.lighter_models));
  std::vector<TokensOfModel> tokens;
  for (const auto& each : opened.models) {
    const ModelInfo& info = each->model->info();
    tokens.push_back({info.name, each->tokenizer.get(), info.vocab_size});
  }
  return check_lighter_pairs(pairs, tokens);
}

/// The pairs were checked.
void link_lighter(const ServeArgs& args, std::vector<std::unique_ptr<ModelEntry>>& entries) {
  for (auto& each : entries) {
    each->lighter_for_all = args.use_lighter_model;
    for (auto& other : entries) {
      if (other->name() == each->served->lighter_name) each->lighter = other.get();
    }
  }
}

/// The files, with the names they are served by.
Result<std::vector<ModelSpec>> specs_of(const ServeArgs& args) {
  std::vector<std::string> references = args.models;
  if (references.empty()) references.emplace_back();
  std::vector<ModelSpec> out;
  for (const std::string& text : references) {
    const ModelReference reference = model_reference(text);
    ModelArgs one = args.model;
    one.model = reference.model;
    ModelSpec spec;
    HEADRACE_ASSIGN(spec.path, find_model(one, true));
    spec.name = reference.name.empty() ? args.served_name : reference.name;
    if (!args.kv_memory.empty()) spec.kv_bytes = *parse_bytes(args.kv_memory);
    out.push_back(std::move(spec));
  }
  return out;
}

Result<std::vector<std::unique_ptr<ModelEntry>>> load_all(const ServeArgs& args) {
  HEADRACE_ASSIGN(OpenOptions options, open_options(args.model));
  options.takes_encoders = true;
  HEADRACE_ASSIGN(const auto specs, specs_of(args));
  if (specs.size() > 1 && !options.adapters.empty()) {
    return Error{ErrorCode::invalid_argument, "adapters are for one model, and there are several",
                 "--lora", "serve the model that has adapters by itself"};
  }
  HEADRACE_ASSIGN(OpenedModels opened, open_models(specs, options));
  HEADRACE_TRY(check_lighter(args, opened));
  std::vector<std::unique_ptr<ModelEntry>> out;
  // Before the engines, which would be in its way, and before there is anybody who waits.
  std::vector<std::shared_ptr<const ModelBounds>> bounds(opened.models.size());
  if (!args.no_bounds) bounds = measure_bounds(opened.models);
  for (size_t i = 0; i < opened.models.size(); ++i) {
    auto& each = opened.models[i];
    for (const std::string& text : each->warnings) warn(text);
    HEADRACE_ASSIGN(auto entry, entry_of(args, std::move(each), std::move(bounds[i])));
    out.push_back(std::move(entry));
  }
  link_lighter(args, out);
  return out;
}

std::string address_text(const ServeArgs& args, const server::Server& server) {
  if (!args.unix_socket.empty()) return args.unix_socket;
  const bool is_v6 = args.host.find(':') != args.host.npos;
  return fmt::format("{}://{}{}{}:{}", args.tls_key.empty() ? "http" : "https", is_v6 ? "[" : "",
                     args.host, is_v6 ? "]" : "", server.port());
}

/// "smollm2 (context 8192, 16 at once, KV memory 1.2 GB)".
std::string model_line(const ModelEntry& entry) {
  uint64_t kv_bytes = 0;
  for (const KvGroupStats& group : entry.engine->stats().groups) {
    kv_bytes += static_cast<uint64_t>(group.num_blocks) * group.block_bytes;
  }
  return fmt::format("model {}: context {}, {} at once, KV memory {}", entry.name(),
                     entry.engine->max_context(), entry.max_sequences, size_text(kv_bytes));
}

std::string access_line(const server::ServerOptions& options) {
  return options.keys.empty() ? "no API key is asked for"
                              : fmt::format("API keys: {}", options.keys.size());
}

/// What a person wants to know when it is ready.
void announce(const ServeArgs& args, const server::Server& server, const std::string& access,
              const std::vector<std::string>& model_lines, server::ServerLog& log) {
  using server::LogLevel;
  for (const std::string& line : model_lines) log.note(LogLevel::info, line);
  const std::string address = address_text(args, server);
  log.note(LogLevel::info, access);
  log.note(LogLevel::info, fmt::format("headrace {} serves at {}", kVersion, address));
  if (args.no_page || !args.unix_socket.empty()) return;
  log.note(LogLevel::info, fmt::format("chat page {}/, dashboard {}/dashboard", address, address));
}

/// Running requests end in their time.
void drain(const ServeArgs& args, server::Server& server) {
  server.drain();
  const auto end =
      std::chrono::steady_clock::now() + milliseconds(static_cast<int64_t>(args.drain_time * 1e3));
  while (server.num_under_way() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(10));
  }
}

/// What of the lighter models needs no model.
Result<void> check_lighter_options(const ServeArgs& args) {
  HEADRACE_ASSIGN(const auto pairs, lighter_pairs(args.lighter_models));
  if (args.use_lighter_model && pairs.empty()) {
    return Error{ErrorCode::invalid_argument, "needs --lighter-model too", "--use-lighter-model",
                 ""};
  }
  return {};
}

/// The name that a model is served by, as far as that can be told before it is found; else "".
std::string told_name(const ServeArgs& args, const ModelReference& reference) {
  if (!reference.name.empty()) return reference.name;
  if (!args.served_name.empty()) return args.served_name;
  // A name of the store may be a file of another name.
  return reference.model.ends_with(".gguf") ? std::filesystem::path(reference.model).stem().string()
                                            : "";
}

/// What a start would find wrong before it opens a model.
Result<void> check_files_and_names(const ServeArgs& args, const server::HttpOptions& http) {
  if (http.tls) HEADRACE_TRY(server::check_tls_files(*http.tls));
  std::vector<std::string> names;
  for (const std::string& text : args.models) {
    const std::string name = told_name(args, model_reference(text));
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("two models are called '{}'", printable(name, 60)), "--model",
                   "give them names of their own: -m NAME=FILE"};
    }
    if (!name.empty()) names.push_back(name);
  }
  return {};
}

/// `known`: the options of the command.
Result<int> run_checked(const ServeArgs& args, const std::vector<Option>& known) {
  auto options = server_options(args);
  if (!options.ok()) return fail_usage("serve", options.error(), false);
  if (const auto right = check_sampling(args.sampling); !right.ok()) {
    return fail_usage("serve", right.error(), false);
  }
  if (!args.kv_memory.empty()) {
    if (auto bytes = parse_bytes(args.kv_memory); !bytes.ok()) {
      return fail_usage("serve", std::move(bytes).error().at("--kv-memory"), false);
    }
  }
  if (const auto right = check_lighter_options(args); !right.ok()) {
    return fail_usage("serve", right.error(), false);
  }
  if (args.prints_config) {
    if (auto right = check_files_and_names(args, options->http); !right.ok()) {
      return fail_usage("serve", right.error(), false);
    }
    print(config_text(known));
    return kDone;
  }
  const EndSignals signals;
  const std::string access = access_line(*options);
  const auto log = server::make_log(log_options(args));
  HEADRACE_ASSIGN(const auto server, server::start_server(std::move(options).value(), log.get()));
  HEADRACE_ASSIGN(auto models, load_all(args));
  if (signals.came()) return kDone;
  std::vector<std::string> lines;
  for (const auto& each : models) lines.push_back(model_line(*each));
  server->set_models(std::move(models));
  announce(args, *server, access, lines, *log);
  while (!signals.came()) std::this_thread::sleep_for(kLookAtSignals);
  log->note(server::LogLevel::info, "ending, when those under way are answered");
  drain(args, *server);
  server->stop();
  return kDone;
}

}  // namespace

Command serve_command() {
  auto args = std::make_shared<ServeArgs>();
  Command command;
  command.name = "serve";
  command.summary = "Answer requests over HTTP, as OpenAI's API does";
  command.description =
      "The server speaks OpenAI's API at /v1, so that its clients work by their base address "
      "alone, and has a chat page at /. While models are loaded requests are answered 503; /health "
      "tells when they are ready.\n"
      "Ctrl-C or SIGTERM ends it: new requests are answered 503, those under way have --drain-time "
      "to end; a second signal ends it at once.\n"
      "A file of settings (--config) is TOML, with the names of the options as keys: port = 8081, "
      "model = [\"small=a.gguf\", \"large=b.gguf\"]. What is typed wins over the file, "
      "--no-FLAG or --FLAG=false over a flag that it sets; "
      "--print-config prints all settings as such a file.";
  add_serve_options(command.options, *args);
  command.examples = {
      {"headrace serve", "the default model at http://127.0.0.1:8080"},
      {"headrace serve -m model.gguf --host 0.0.0.0 --api-key-file keys.txt -np 64",
       "for a team, with a key for each"},
      {"headrace serve --config headrace.toml", "settings from a file: max-queue = 64"},
      {"headrace serve -m small=a.gguf -m large=b.gguf", "two models, chosen by a request's model"},
  };
  command.run = [args = args.get(), known = command.options] {
    auto result = run_checked(*args, known);
    return result.ok() ? *result : fail(result.error(), false);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
