// What the endpoints have in common. Must not know sockets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.h"
#include "server/admission.h"
#include "server/metrics.h"
#include "server/model_set.h"
#include "server/request_log.h"
#include "server/request_trace.h"
#include "server/server_options.h"

namespace headrace::server {

struct ServerState {
  explicit ServerState(ServerOptions given)
      : options(std::move(given)),
        admission(options.admission),
        text_tools({options.max_text_tools, options.admission.max_waiting_bytes}) {}

  const ServerOptions options;
  SystemClock clock;
  const int64_t started_ns = clock.now_ns();
  Admission admission;   ///< of what generates
  Admission text_tools;  ///< of what works on bodies alone
  Metrics metrics{options.sensors_root};
  TraceLog traces;
  RequestLog* log = nullptr;  ///< may be null
  std::function<HttpStats()> http_stats;
  std::atomic<bool> is_draining{false};

  /// Null while they are being loaded.
  std::shared_ptr<const ModelSet> models() const {
    const std::lock_guard lock(models_mutex_);
    return models_;
  }
  void set_models(std::shared_ptr<const ModelSet> models) {
    const std::lock_guard lock(models_mutex_);
    models_ = std::move(models);
  }

 private:
  mutable std::mutex models_mutex_;
  std::shared_ptr<const ModelSet> models_;
};

/// Whose request it is: the key's owner; null where there are no keys, or none fits.
const ApiKey* key_of(const ServerState& state, const HttpRequest& request);

}  // namespace headrace::server
