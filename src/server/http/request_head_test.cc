// What a header must be, without a connection.
#include "server/http/request_head.h"

#include <gtest/gtest.h>

namespace headrace::server {
namespace {

HttpRequest head_of(std::string target, std::vector<HttpHeader> headers) {
  HttpRequest request;
  request.method = "POST";
  request.target = std::move(target);
  request.headers = std::move(headers);
  return request;
}

/// The status of its fault; 0 where there is none.
int fault_of(HttpRequest request, bool is_http_1_0 = false) {
  HttpLimits limits;
  limits.max_headers = 3;
  limits.max_target_bytes = 20;
  const bool has_path = take_target(request);
  const auto fault = head_fault(request, has_path, is_http_1_0, limits);
  EXPECT_TRUE(!fault || !fault->message.empty());
  return fault ? fault->status : 0;
}

const HttpHeader kHost{"host", "localhost"};

TEST(RequestHead, IsFine) {
  EXPECT_EQ(fault_of(head_of("/a?b=c", {kHost})), 0);
  EXPECT_EQ(fault_of(head_of("/", {kHost, {"transfer-encoding", "Chunked"}})), 0);
  EXPECT_EQ(fault_of(head_of("/", {kHost, {"expect", "100-Continue"}})), 0);
  EXPECT_EQ(fault_of(head_of("/", {}), true), 0);
}

TEST(RequestHead, HasFaults) {
  EXPECT_EQ(fault_of(head_of("/" + std::string(20, 'a'), {kHost})), 414);
  EXPECT_EQ(fault_of(head_of("/", {kHost, {"a", ""}, {"a", ""}, {"a", ""}})), 431);
  EXPECT_EQ(fault_of(head_of("/", {})), 400);
  EXPECT_EQ(fault_of(head_of("/", {kHost, kHost})), 400);
  EXPECT_EQ(fault_of(head_of("/", {kHost, kHost}), true), 400);
  for (const char* target : {"", "a", "/%", "/%0", "/%zz", "/%00", "*"}) {
    EXPECT_EQ(fault_of(head_of(target, {kHost})), 400) << target;
  }
  for (const char* coding : {"gzip", "chunked, gzip", "gzip, chunked", "", "chunke", "chunkedd"}) {
    EXPECT_EQ(fault_of(head_of("/", {kHost, {"transfer-encoding", coding}})), 501) << coding;
  }
  const HttpHeader chunked{"transfer-encoding", "chunked"};
  EXPECT_EQ(fault_of(head_of("/", {kHost, chunked, chunked})), 501);
  EXPECT_EQ(fault_of(head_of("/", {kHost, chunked}), true), 400);
  EXPECT_EQ(fault_of(head_of("/", {kHost, {"expect", "a-pony"}})), 417);
}

TEST(RequestHead, ABodyIsNotCompressed) {
  const HttpHeader length{"content-length", "10"};
  const HttpHeader chunked{"transfer-encoding", "chunked"};
  for (const char* encoding : {"gzip", "br", "deflate, gzip", "identity, gzip", "zstd", "x"}) {
    const HttpHeader encoded{"content-encoding", encoding};
    EXPECT_EQ(fault_of(head_of("/", {kHost, length, encoded})), 415) << encoding;
    EXPECT_EQ(fault_of(head_of("/", {kHost, chunked, encoded})), 415) << encoding;
    EXPECT_EQ(fault_of(head_of("/", {kHost, encoded})), 0) << "there is no body";
    EXPECT_EQ(fault_of(head_of("/", {kHost, {"content-length", "00"}, encoded})), 0);
  }
  for (const char* encoding : {"identity", "Identity", ""}) {
    EXPECT_EQ(fault_of(head_of("/", {kHost, length, {"content-encoding", encoding}})), 0);
  }
}

TEST(RequestHead, PathOfAMalformedTargetIsAsItWasSent) {
  HttpRequest request = head_of("/a%zz?key=secret#b", {});
  EXPECT_FALSE(take_target(request));
  EXPECT_EQ(request.path, "/a%zz");
  EXPECT_EQ(request.query, "");
  request = head_of("/a%20b?c", {});
  EXPECT_TRUE(take_target(request));
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(request.query, "c");
}

}  // namespace
}  // namespace headrace::server
