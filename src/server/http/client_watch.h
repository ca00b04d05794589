// Sees that a client ends its connection while its request is answered: nobody reads from it then.
// Only for the files of this folder that include Boost. Must not know HTTP.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/http/connection.h"

namespace headrace::server {

/// All of it belongs to the I/O thread.
class ClientWatch : public std::enable_shared_from_this<ClientWatch> {
 public:
  /// `gone` is called where the client has gone, after what is under way was cancelled.
  ClientWatch(std::shared_ptr<Connection> connection, std::function<void()> gone);

  void start();
  void stop();
  /// Since start().
  bool is_gone() const { return is_gone_; }

 private:
  void look();
  void see_gone();

  const std::shared_ptr<Connection> connection_;
  const std::function<void()> gone_;
  asio::steady_timer again_;
  int64_t turn_ = 0;  ///< what began in an earlier one is over
  bool is_gone_ = false;
};

}  // namespace headrace::server
