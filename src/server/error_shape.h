// How an error looks to a client. Must not know routes.
#pragma once

#include <cstdint>

namespace headrace::server {

enum class ErrorShape : uint8_t {
  openai,    ///< {"error": {"message", "type", "code", "param"}}
  anthropic  ///< {"type": "error", "error": {"type", "message"}}
};

}  // namespace headrace::server
