// headrace explain: where the time of a request to a running server went.
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json_depth.h"
#include "cli/commands.h"
#include "cli/explain_text.h"
#include "cli/make_option.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "server/access.h"
#include "server/http/http_get.h"

namespace headrace::cli {
namespace {

constexpr int kMaxDepth = 64;
constexpr const char* kKeyVariable = "HEADRACE_API_KEY";

struct ExplainArgs {
  std::string id;
  std::string url = "http://127.0.0.1:8080";
  std::string api_key;
  std::string api_key_file;
  std::string ca_certificates;
  bool is_insecure = false;
  bool json = false;
};

Option secret(Option option) {
  option.is_secret = true;
  return option;
}

/// The message of the server's error, or nothing of use.
std::string server_message(const std::string& body) {
  if (json_depth(body) > kMaxDepth) return "";
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("error") || !parsed["error"].is_object()) return "";
  const auto& error = parsed["error"];
  return error.contains("message") && error["message"].is_string()
             ? error["message"].get<std::string>()
             : "";
}

Error refused(const server::HttpAnswer& answer, const std::string& where) {
  Error error{ErrorCode::io_error, server_message(answer.body), where, ""};
  if (error.message.empty()) {
    error.message = "the server answered " + std::to_string(answer.status);
  }
  if (answer.status == 404) error.code = ErrorCode::not_found;
  if (answer.status == 401) {
    error.hint = std::string("give a key with --api-key-file, or as ") + kKeyVariable;
  }
  return error;
}

/// The key that was typed, else the file's, else the environment's; "" where there is none.
Result<std::string> key_of(const ExplainArgs& args) {
  if (!args.api_key.empty()) return args.api_key;
  if (!args.api_key_file.empty()) return server::first_api_key(args.api_key_file);
  const char* const set = std::getenv(kKeyVariable);
  return std::string(set != nullptr ? set : "");
}

Result<int> explain_request(const ExplainArgs& args) {
  std::string base = args.url;
  while (base.ends_with('/')) base.pop_back();
  server::HttpGetOptions options;
  HEADRACE_ASSIGN(options.api_key, key_of(args));
  options.ca_certificates = args.ca_certificates;
  options.checks_certificate = !args.is_insecure;
  HEADRACE_ASSIGN(const server::HttpAnswer answer,
                  server::http_get(base + "/explain/" + server::path_segment(args.id), options));
  if (answer.status != 200) return refused(answer, args.id);
  const bool is_deep = json_depth(answer.body) > kMaxDepth;
  const auto explained = nlohmann::json::parse(is_deep ? "" : answer.body, nullptr, false);
  if (!explained.is_object() || !explained.contains("choices")) {
    return Error{ErrorCode::invalid_argument, "what answers there is no Headrace server", args.url,
                 ""};
  }
  if (args.json) {
    print_json(explained);
  } else {
    print(explain_text(explained));
  }
  return kDone;
}

}  // namespace

Command explain_command() {
  auto args = std::make_shared<ExplainArgs>();
  Command command;
  command.name = "explain";
  command.summary = "Show where the time of a request to a server went";
  command.description =
      "Asks a running `headrace serve` for one of its last 256 requests: its phases, how its "
      "prompt "
      "was computed, in whose company its tokens were, and why it ended. Of a server with keys "
      "only "
      "the key that sent a request may ask: it is typed (where other users of the machine may see "
      "it), the first of a file as serve has one, or the environment's HEADRACE_API_KEY.\n"
      "An answer's id (chatcmpl-...) names it, or what the reply's x-request-id says (req-...). "
      "Prompts are shown where the server was started with --explain-text.";
  command.options = {
      {.names = "id", .help = "The request's id", .target = &args->id, .required = true},
      make_option("--url", "URL", "Where the server is", &args->url, args->url),
      secret(make_option("--api-key", "KEY", "The key that sent the request", &args->api_key,
                         "the environment's HEADRACE_API_KEY")),
      path_option("--api-key-file", "FILE", "A file whose first key it is", &args->api_key_file),
      path_option("--cacert", "FILE",
                  "Certificates (PEM) to trust over https, besides the system's",
                  &args->ca_certificates),
      make_option("--insecure", "", "Do not check whose certificate an https server has",
                  &args->is_insecure),
      json_option(&args->json),
  };
  command.examples = {{"headrace explain chatcmpl-4QJk2dMZs0", "of the server on this machine"}};
  command.run = [args = args.get()] {
    auto result = explain_request(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
