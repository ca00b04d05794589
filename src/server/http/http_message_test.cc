#include "server/http/http_message.h"

#include <gtest/gtest.h>

#include <string>

#include "server/http/reply_bytes.h"

namespace headrace::server {
namespace {

TEST(SplitTarget, DecodesPathAndKeepsQuery) {
  std::string path;
  std::string query;
  ASSERT_TRUE(split_target("/v1/mod%65ls/a%20b?x=1&y=%20#part", path, query));
  EXPECT_EQ(path, "/v1/models/a b");
  EXPECT_EQ(query, "x=1&y=%20");
  ASSERT_TRUE(split_target("http://host:80/health", path, query));
  EXPECT_EQ(path, "/health");
  ASSERT_TRUE(split_target("http://host", path, query));
  EXPECT_EQ(path, "/");
}

TEST(SplitTarget, RefusesWhatIsNoPath) {
  std::string path;
  std::string query;
  for (const char* wrong :
       {"", "*", "v1/models", "/%", "/%4", "/%zz", "/a%00b", "/a%0ab", "/\x7f"}) {
    EXPECT_FALSE(split_target(wrong, path, query)) << wrong;
  }
}

TEST(ReplyHead, SaysLengthOrChunks) {
  HttpReply reply;
  reply.headers = {{"ETag", "\"x\""}};
  const std::string whole = reply_head(reply, {{"Server", "s"}}, 5, {.request_id = "req-1"});
  EXPECT_EQ(whole,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n"
            "X-Request-Id: req-1\r\nServer: s\r\nETag: \"x\"\r\nConnection: keep-alive\r\n\r\n");
  const std::string streamed = reply_head(reply, {}, std::nullopt, {.keeps_alive = false});
  EXPECT_NE(streamed.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_NE(streamed.find("Connection: close\r\n"), std::string::npos);
  const std::string old = reply_head(reply, {}, std::nullopt, {.is_http_1_0 = true});
  EXPECT_TRUE(old.starts_with("HTTP/1.0 200")) << old;
  EXPECT_EQ(old.find("chunked"), std::string::npos);
}

TEST(ReplyHead, NoContentHasNoBody) {
  HttpReply reply;
  for (const int status : {204, 304}) {
    reply.status = status;
    const std::string head = reply_head(reply, {}, 0, {});
    EXPECT_EQ(head.find("Content-Length"), std::string::npos);
    EXPECT_EQ(head.find("Content-Type"), std::string::npos);
  }
}

TEST(ReplyHead, AValueCannotBeginAHeader) {
  HttpReply reply;
  reply.headers = {{"X", "a\r\nSet-Cookie: b\n\x01"}};
  const std::string head = reply_head(reply, {}, 0, {});
  EXPECT_EQ(head.find("\nSet-Cookie"), std::string::npos);
  EXPECT_NE(head.find("X: a  Set-Cookie: b  \r\n"), std::string::npos);
}

TEST(AppendChunk, HasItsSizeInHex) {
  std::string out;
  append_chunk(out, std::string(26, 'x'));
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace headrace::server
