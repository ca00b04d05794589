// What an endpoint is to the server: one line in routes.cc. Must not know sockets.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/error_shape.h"
#include "server/http/exchange.h"

namespace headrace::server {

struct ServerState;

enum class Access : uint8_t {
  key,      ///< whoever has a key, where the server has keys
  everyone  ///< health and the page alone
};

enum class RunsOn : uint8_t {
  worker,       ///< takes little time
  long_worker,  ///< may take as long as a large body takes; so many may be there at once
  io_thread     ///< answers at once, whatever the rest of the server does; or posts its own work
};

/// While models are loaded, or the server drains.
enum class Until : uint8_t {
  ready,  ///< answered 503
  always  ///< answered all the same
};

struct Route {
  std::string_view method;
  std::string_view path;  ///< whole; one that ends in '/' and has `takes_rest`: what follows too
  Access access = Access::key;
  RunsOn runs_on = RunsOn::worker;
  Until until = Until::ready;
  bool takes_rest = false;
  bool generates = false;   ///< counts for the bounds on what waits
  bool is_routine = false;  ///< asked again and again by machines: not told of at the usual level
  ErrorShape errors = ErrorShape::openai;
  void (*handle)(ServerState& state, std::shared_ptr<Exchange> exchange) = nullptr;
};

/// All there are. What is not among them does not exist.
std::span<const Route> routes();

struct FoundRoute {
  const Route* route = nullptr;        ///< null: 404, or 405
  std::string_view other_method = {};  ///< that of such a path, where another was asked for
};
FoundRoute find_route(std::string_view method, std::string_view path);
/// Of a path's errors, whatever the method: those of the route that it names or lies below.
ErrorShape error_shape(std::string_view path);

}  // namespace headrace::server
