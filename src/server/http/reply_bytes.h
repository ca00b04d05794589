// A reply as the bytes of HTTP/1.1 (RFC 9112). Must not know sockets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"

namespace headrace::server {

struct ReplyFraming {
  bool is_http_1_0 = false;
  bool has_body = true;  ///< false for HEAD, 204 and 304
  bool keeps_alive = true;
  std::string_view request_id{};
};

/// Status line and headers; `body_bytes`: nothing for a streamed body, which is in chunks, or
/// under HTTP/1.0 ends with the connection. Line ends and control characters in values become
/// spaces: nothing can begin a header of its own.
std::string reply_head(const HttpReply& reply, const std::vector<HttpHeader>& common,
                       std::optional<size_t> body_bytes, const ReplyFraming& framing);

/// `bytes`, which are not none, as one chunk.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace headrace::server
