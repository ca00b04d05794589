// See reply_bytes.h.
#include "server/http/reply_bytes.h"

#include <fmt/format.h>

namespace headrace::server {
namespace {

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(byte < 0x20 || byte == 0x7f ? ' ' : c);
  }
  out += "\r\n";
}

}  // namespace

std::string reply_head(const HttpReply& reply, const std::vector<HttpHeader>& common,
                       std::optional<size_t> body_bytes, const ReplyFraming& framing) {
  std::string out = fmt::format("HTTP/1.{} {} {}\r\n", framing.is_http_1_0 ? 0 : 1, reply.status,
                                reason_phrase(reply.status));
  const bool has_no_content = reply.status == 204 || reply.status == 304;
  if (!reply.content_type.empty() && !has_no_content) {
    append_header(out, "Content-Type", reply.content_type);
  }
  if (body_bytes) {
    if (!has_no_content) append_header(out, "Content-Length", std::to_string(*body_bytes));
  } else if (!framing.is_http_1_0) {
    append_header(out, "Transfer-Encoding", "chunked");
  }
  if (!framing.request_id.empty()) append_header(out, "X-Request-Id", framing.request_id);
  for (const HttpHeader& each : common) append_header(out, each.name, each.value);
  for (const HttpHeader& each : reply.headers) append_header(out, each.name, each.value);
  append_header(out, "Connection", framing.keeps_alive ? "keep-alive" : "close");
  out += "\r\n";
  return out;
}

void append_chunk(std::string& out, std::string_view bytes) {
  out += fmt::format("{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

}  // namespace headrace::server
