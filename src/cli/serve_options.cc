// See serve_options.h.
#include "cli/serve_options.h"

#include <algorithm>
#include <utility>

#include "base/saturating.h"
#include "cli/make_option.h"
#include "cli/parse_bytes.h"
#include "cli/version.h"

namespace headrace::cli {
namespace {

using std::chrono::milliseconds;

milliseconds in_milliseconds(double seconds) {
  return milliseconds(static_cast<int64_t>(seconds * 1e3));
}

Option in_group(Option option, const char* group) {
  option.group = group;
  return option;
}

Option whole_number(Option option, double least, double most) {
  option.min_value = least;
  option.max_value = most;
  return option;
}

void add_network(std::vector<Option>& options, ServeArgs& args) {
  constexpr const char* kGroup = "Network";
  const auto add = [&](Option option) { options.push_back(in_group(std::move(option), kGroup)); };
  add(make_option("--host", "ADDRESS", "Where to listen; 0.0.0.0 lets other machines in",
                  &args.host, "127.0.0.1"));
  add(whole_number(make_option("--port", "N", "Port; 0: any free one", &args.port, "8080"), 0,
                   65535));
  add(path_option("--unix-socket", "FILE", "Listen on a Unix socket instead", &args.unix_socket));
  add(path_option("--tls-cert,--ssl-cert-file,--ssl-certfile", "FILE",
                  "Serve HTTPS with this certificate (PEM, with its chain)",
                  &args.tls_certificate));
  add(path_option("--tls-key,--ssl-key-file,--ssl-keyfile", "FILE",
                  "The key of the certificate (PEM)", &args.tls_key));
  Option key = make_option(
      "--api-key", "KEY", "Only answer requests with this key; may be given again", &args.api_keys);
  key.is_secret = true;
  add(std::move(key));
  add(path_option("--api-key-file", "FILE",
                  "Keys, one a line: KEY [owner=NAME] [max-requests=N] [priority=N]",
                  &args.api_key_file));
  add(make_option("--allowed-host", "NAME",
                  "A Host name to answer to, besides localhost; may be given again",
                  &args.allowed_hosts, "any, where --host is not loopback"));
  add(make_option("--allowed-origin,--allowed-origins", "ORIGIN",
                  "An origin whose pages may ask (https://example.org); may be given again",
                  &args.allowed_origins));
  add(make_option("--no-page,--no-webui", "", "Serve no chat page and no dashboard",
                  &args.no_page));
}

void add_engine(std::vector<Option>& options, ServeArgs& args) {
  constexpr const char* kGroup = "Engine";
  const auto add = [&](Option option) { options.push_back(in_group(std::move(option), kGroup)); };
  add(whole_number(
      make_option("-np,--max-sequences,--parallel,--max-num-seqs", "N",
                  "Sequences computed at once, of each model", &args.max_sequences, "16"),
      1, 1024));
  add(whole_number(make_option("--max-queue", "N", "Requests that may wait; more are answered 429",
                               &args.max_queue, "1024"),
                   1, 1'000'000));
  add(make_option("--kv-memory", "SIZE", "Memory of the KV cache of each model: 512M, 2G, 1.5GB",
                  &args.kv_memory, "for -np whole contexts, at most half of the free memory"));
  add(whole_number(
      make_option("--max-wait-ms", "N", "How long a request may wait for others to begin with it",
                  &args.max_wait_ms, "0"),
      0, 3'600'000));
  Option slowdown =
      make_option("--max-slowdown", "X",
                  "Prompts are computed in pieces so small that running answers are at "
                  "most so many times slower; 0: as large as a step may be",
                  &args.max_slowdown, "0");
  slowdown.min_value = 0;
  add(std::move(slowdown));
  add(make_option("--no-prefix-cache", "", "Compute each prompt as a whole, shared beginnings too",
                  &args.no_prefix_cache));
  add(make_option("--share-prefix-cache", "",
                  "Share prefixes among all API keys: faster, but the time of an answer tells one "
                  "key what another has asked",
                  &args.share_prefix_cache));
  add(make_option("--lighter-model", "MODEL=LIGHTER",
                  "Of the models served, which answers where MODEL has no room, for requests with "
                  "\"allow_lighter_model\": true; may be given again",
                  &args.lighter_models));
  add(make_option("--use-lighter-model", "",
                  "All requests may be answered by the lighter model; its name is in the answer",
                  &args.use_lighter_model));
}

void add_limits(std::vector<Option>& options, ServeArgs& args) {
  constexpr const char* kGroup = "Limits";
  const auto add = [&](Option option) { options.push_back(in_group(std::move(option), kGroup)); };
  const auto seconds = [&](const char* name, const char* help, double* target, const char* value) {
    Option option = make_option(name, "SECONDS", help, target, value);
    option.min_value = 0.001;
    option.max_value = 86'400;
    add(std::move(option));
  };
  add(make_option("--max-body", "SIZE", "Longest body of a request", &args.max_body, "8M"));
  add(make_option("--max-waiting-bytes", "SIZE",
                  "Of bodies that are not yet tokens, all together; more are answered 429",
                  &args.max_waiting_bytes, "64M"));
  add(make_option("--max-unsent", "SIZE",
                  "Of a streamed answer that its reader has not taken; then its sequence pauses",
                  &args.max_unsent, "256K"));
  add(whole_number(make_option("--max-header-bytes", "N", "Longest header of a request",
                               &args.max_header_bytes, "16384"),
                   256, 1 << 20));
  add(whole_number(
      make_option("--max-headers", "N", "Header lines of a request", &args.max_headers, "64"), 1,
      10'000));
  add(whole_number(make_option("--max-uri-bytes", "N", "Longest address of a request",
                               &args.max_uri_bytes, "8192"),
                   64, 1 << 20));
  add(whole_number(
      make_option("--max-connections", "N", "Connections at once", &args.max_connections, "4096"),
      1, 1'000'000));
  seconds("--header-timeout", "For the header of a request", &args.header_timeout, "10");
  seconds("--body-timeout", "For the body of a request", &args.body_timeout, "30");
  seconds("--idle-timeout", "Between two requests of a connection", &args.idle_timeout, "75");
  seconds("--stall-timeout", "In which a reader must take something", &args.stall_timeout, "30");
  seconds("--keep-alive", "Between two signs of life in a stream of which nothing else comes",
          &args.keep_alive, "15");
  seconds("--drain-time", "For requests under way when the server is ended", &args.drain_time,
          "30");
  seconds("--stuck-after", "A step without a finished layer for so long makes the server not ready",
          &args.stuck_after, "10");
}

void add_output(std::vector<Option>& options, ServeArgs& args) {
  constexpr const char* kGroup = "Output";
  const auto add = [&](Option option) { options.push_back(in_group(std::move(option), kGroup)); };
  add(make_option("--explain-text", "",
                  "Keep the prompts of the last 256 requests in memory, for 'headrace explain' "
                  "with the key that sent them",
                  &args.explain_text));
  add(make_option("--no-bounds", "",
                  "Do not measure at the start (0.2 seconds) what the machine allows; then "
                  "/explain, /metrics and the dashboard show speeds without their bounds",
                  &args.no_bounds));
  add(make_option("--log-json", "", "Log lines are JSON", &args.log_json));
  Option level =
      make_option("--log-level", "LEVEL",
                  "What is logged: of debug on also health, metrics and the page's files",
                  &args.log_level, "info");
  level.choices = server::log_level_names();
  add(std::move(level));
  add(make_option("--quiet", "", "Log nothing but faults", &args.quiet));
}

Error wrong(const char* flag, std::string message, std::string hint = "") {
  return {ErrorCode::invalid_argument, std::move(message), flag, std::move(hint)};
}

bool is_loopback_address(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<void> set_access(const ServeArgs& args, server::ServerOptions& out) {
  for (const std::string& each : args.api_keys) {
    if (each.empty()) return wrong("--api-key", "is empty");
    out.keys.push_back(server::api_key(each, "key-" + std::to_string(out.keys.size() + 1)));
  }
  if (!args.api_key_file.empty()) {
    HEADRACE_ASSIGN(auto keys, server::read_api_keys(args.api_key_file, out.keys.size()));
    for (const server::ApiKey& key : keys) {
      const auto is_same = [&](const server::ApiKey& other) { return other.hash == key.hash; };
      if (std::any_of(out.keys.begin(), out.keys.end(), is_same)) {
        return wrong("--api-key", "is in the file of keys too", "give it in one place");
      }
    }
    out.keys.insert(out.keys.end(), keys.begin(), keys.end());
  }
  out.origins.origins = args.allowed_origins;
  for (const std::string& each : args.allowed_hosts) {
    out.origins.hosts.push_back(server::host_name(each));
  }
  if (is_loopback_address(args.host) || !out.origins.hosts.empty()) {
    for (const char* own : {"localhost", "127.0.0.1", "[::1]"}) out.origins.hosts.emplace_back(own);
    if (is_loopback_address(args.host))
      out.origins.hosts.push_back(args.host == "::1" ? "[::1]" : server::host_name(args.host));
  }
  if (!args.unix_socket.empty() && args.allowed_hosts.empty()) out.origins.hosts.clear();
  return {};
}

Result<uint64_t> size_of(const char* flag, const std::string& text) {
  auto bytes = parse_bytes(text);
  if (!bytes.ok()) return std::move(bytes).error().at(flag);
  return bytes;
}

Result<void> set_network(const ServeArgs& args, server::HttpOptions& out) {
  out.host = args.host;
  out.port = static_cast<uint16_t>(args.port);
  out.unix_path = args.unix_socket;
  if (args.tls_certificate.empty() != args.tls_key.empty()) {
    return wrong(args.tls_key.empty() ? "--tls-cert" : "--tls-key", "needs the other one too",
                 "give both --tls-cert and --tls-key");
  }
  if (!args.tls_key.empty()) out.tls = {args.tls_certificate, args.tls_key};
  HEADRACE_ASSIGN(const uint64_t body, size_of("--max-body", args.max_body));
  out.limits.max_body_bytes = body;
  out.limits.max_body_bytes_of_all =
      std::max<size_t>(out.limits.max_body_bytes_of_all, saturating_mul(uint64_t{2}, body));
  out.limits.max_header_bytes = static_cast<size_t>(args.max_header_bytes);
  out.limits.max_headers = static_cast<int>(args.max_headers);
  out.limits.max_target_bytes = static_cast<size_t>(args.max_uri_bytes);
  out.limits.max_connections = static_cast<int>(args.max_connections);
  out.limits.header_time = in_milliseconds(args.header_timeout);
  out.limits.body_time = in_milliseconds(args.body_timeout);
  out.limits.idle_time = in_milliseconds(args.idle_timeout);
  out.limits.stall_time = in_milliseconds(args.stall_timeout);
  return {};
}

}  // namespace

ModelReference model_reference(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return {"", text};
  const std::string name = text.substr(0, equals);
  if (name.find('/') != name.npos || name.find('\\') != name.npos) return {"", text};
  return {name, text.substr(equals + 1)};
}

Result<server::ServerOptions> server_options(const ServeArgs& args) {
  server::ServerOptions out;
  HEADRACE_TRY(set_network(args, out.http));
  HEADRACE_TRY(set_access(args, out));
  HEADRACE_ASSIGN(const uint64_t waiting, size_of("--max-waiting-bytes", args.max_waiting_bytes));
  out.admission.max_waiting_bytes = static_cast<int64_t>(std::min<uint64_t>(waiting, INT64_MAX));
  HEADRACE_ASSIGN(out.max_unsent_bytes, size_of("--max-unsent", args.max_unsent));
  out.keep_alive = in_milliseconds(args.keep_alive);
  out.admission.max_requests = args.max_queue + args.max_sequences;
  out.shares_prefixes = args.share_prefix_cache;
  out.drain_time = in_milliseconds(args.drain_time);
  out.stuck_after = in_milliseconds(args.stuck_after);
  out.has_page = !args.no_page;
  out.keeps_prompts = args.explain_text;
  out.version = kVersion;
  return out;
}

server::LogOptions log_options(const ServeArgs& args) {
  server::LogOptions out;
  out.is_json = args.log_json;
  out.level = server::log_level_of(args.log_level).value_or(server::LogLevel::info);
  if (args.quiet) out.level = std::max(out.level, server::LogLevel::warning);
  return out;
}

void add_serve_options(std::vector<Option>& options, ServeArgs& args) {
  add_model_options(options, args.model);
  // Several may be given, and named.
  for (Option& option : options) {
    if (!option.is_model) continue;
    option.target = &args.models;
    option.value_name = "[NAME=]MODEL";
    option.help +=
        "; given again, each with a name: several models, chosen by a request's \"model\"";
  }
  options.push_back(chat_template_option(args.model));
  options.push_back(make_option("--served-model-name,--alias", "NAME", "What the model is called",
                                &args.served_name, "the file's name"));
  add_network(options, args);
  add_engine(options, args);
  add_limits(options, args);
  add_sampling_options(options, args.sampling);
  add_output(options, args);
  Option config =
      path_option("--config", "FILE", "Read settings from this TOML file", &args.config);
  config.is_config = true;
  options.push_back(in_group(std::move(config), "Settings"));
  Option prints = make_option("--print-config", "", "Print the settings as a TOML file and end",
                              &args.prints_config);
  prints.only_typed = true;
  options.push_back(in_group(std::move(prints), "Settings"));
}

}  // namespace headrace::cli
