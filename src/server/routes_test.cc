#include <gtest/gtest.h>

#include <set>
#include <string>

#include "api/protocol.h"
#include "server/route.h"

namespace headrace::server {
namespace {

TEST(Routes, FindsByMethodAndPath) {
  ASSERT_NE(find_route("POST", "/v1/chat/completions").route, nullptr);
  EXPECT_TRUE(find_route("POST", "/v1/chat/completions").route->generates);
  EXPECT_EQ(find_route("GET", "/v1/chat/completions").other_method, "POST");
  EXPECT_EQ(find_route("DELETE", "/health").other_method, "GET");
  EXPECT_EQ(find_route("GET", "/v1/chat/completions").route, nullptr);
  EXPECT_NE(find_route("HEAD", "/health").route, nullptr);
  EXPECT_NE(find_route("GET", "/v1/models/a/b").route, nullptr);
  EXPECT_EQ(find_route("GET", "/v1/models/").route, nullptr);
  EXPECT_EQ(find_route("GET", "/v1/models/").other_method, "");
  EXPECT_EQ(find_route("GET", "/V1/models").route, nullptr);
  EXPECT_EQ(find_route("GET", "/v1//models").route, nullptr);
}

TEST(Routes, ErrorsUnderMessagesAreAnthropics) {
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"}) {
    EXPECT_EQ(error_shape(path), ErrorShape::anthropic) << path;
  }
  for (const char* path :
       {"/v1/messagesx", "/v1", "/", "", "/v1/chat/completions", "/V1/messages"}) {
    EXPECT_EQ(error_shape(path), ErrorShape::openai) << path;
  }
}

TEST(Routes, OnlyHealthAndThePageArePublic) {
  std::set<std::string> open;
  for (const Route& each : routes()) {
    if (each.access == Access::everyone) open.emplace(each.path);
  }
  EXPECT_EQ(open, (std::set<std::string>{"/", "/assets/", "/dashboard", "/health", "/livez",
                                         "/readyz", "/v1/health"}));
}

TEST(Routes, OtherNamesLeadToTheSame) {
  const auto leads = [](const char* method, const char* path, const char* to) {
    const Route* const one = find_route(method, path).route;
    const Route* const other = find_route(method, to).route;
    return one != nullptr && other != nullptr && one->handle == other->handle &&
           one->access == other->access && one->generates == other->generates &&
           one->until == other->until;
  };
  EXPECT_TRUE(leads("POST", "/chat/completions", "/v1/chat/completions"));
  EXPECT_TRUE(leads("POST", "/completions", "/completion"));
  EXPECT_TRUE(leads("POST", "/rerank", "/v1/rerank"));
  EXPECT_TRUE(leads("GET", "/models", "/v1/models"));
  EXPECT_TRUE(leads("GET", "/v1/health", "/health"));
  EXPECT_EQ(find_route("POST", "/infill").route, nullptr);
}

TEST(Routes, EveryProtocolHasOne) {
  for (const auto protocols : {api::protocols(), api::vector_protocols()}) {
    for (const api::Protocol& protocol : protocols) {
      const Route* route = find_route("POST", protocol.path).route;
      ASSERT_NE(route, nullptr) << protocol.path;
      EXPECT_TRUE(route->generates) << protocol.path;
    }
  }
}

TEST(Routes, NoneIsThereTwice) {
  std::set<std::string> seen;
  for (const Route& each : routes()) {
    EXPECT_TRUE(seen.insert(std::string(each.method) + " " + std::string(each.path)).second)
        << each.path;
    EXPECT_NE(each.handle, nullptr);
  }
}

}  // namespace
}  // namespace headrace::server
