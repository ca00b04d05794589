// The server: routes, who may ask, models that come when they are loaded, an orderly end. Must not
// know how models are opened.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/result.h"
#include "server/model_set.h"
#include "server/request_log.h"
#include "server/server_options.h"

namespace headrace::server {

class Server {
 public:
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;
  /// From now on requests are served; before, they are answered 503. Once.
  virtual void set_models(std::vector<std::unique_ptr<ModelEntry>> models) = 0;
  /// New requests are answered 503, those under way go on.
  virtual void drain() = 0;
  /// Requests that are not answered yet.
  virtual int64_t num_under_way() const = 0;
  /// Ends everything, whatever is under way.
  virtual void stop() = 0;
};

/// Binds the port and begins to answer. `log` may be null, and must outlive the server. Errors:
/// those of start_http_server().
Result<std::unique_ptr<Server>> start_server(ServerOptions options, RequestLog* log);

}  // namespace headrace::server
