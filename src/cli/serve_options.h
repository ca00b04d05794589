// The options of `headrace serve`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "headrace/result.h"
#include "server/log.h"
#include "server/server_options.h"

namespace headrace::cli {

struct ServeArgs {
  std::string config;               ///< a file; parse_args has read it
  bool prints_config = false;       ///< instead of serving
  std::vector<std::string> models;  ///< "MODEL" or "NAME=MODEL"
  std::string served_name;
  ModelArgs model;  ///< how each is opened
  SamplingArgs sampling;

  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::string unix_socket;
  std::string tls_certificate;
  std::string tls_key;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;
  bool no_page = false;

  int64_t max_sequences = 16;
  int64_t max_queue = 1024;
  std::string kv_memory;
  int64_t max_wait_ms = 0;
  double max_slowdown = 0;
  bool no_prefix_cache = false;
  bool share_prefix_cache = false;
  std::vector<std::string> lighter_models;  ///< "MODEL=LIGHTER"; see lighter_pairs()
  bool use_lighter_model = false;           ///< for all requests

  std::string max_body = "8M";
  std::string max_waiting_bytes = "64M";
  std::string max_unsent = "256K";
  int64_t max_header_bytes = 16 << 10;
  int64_t max_headers = 64;
  int64_t max_uri_bytes = 8 << 10;
  int64_t max_connections = 4096;
  double keep_alive = 15;
  double header_timeout = 10;
  double body_timeout = 30;
  double idle_timeout = 75;
  double stall_timeout = 30;
  double drain_time = 30;
  double stuck_after = 10;

  bool explain_text = false;
  bool no_bounds = false;
  bool log_json = false;
  std::string log_level = "info";
  bool quiet = false;
};

void add_serve_options(std::vector<Option>& options, ServeArgs& args);

/// Errors (invalid_argument, naming the flag).
Result<server::ServerOptions> server_options(const ServeArgs& args);

server::LogOptions log_options(const ServeArgs& args);

/// "NAME=MODEL" gives both; a name is one word without '/', so that paths with '=' in them are
/// paths.
struct ModelReference {
  std::string name;  ///< empty: the model's own
  std::string model;
};
ModelReference model_reference(const std::string& text);

}  // namespace headrace::cli
