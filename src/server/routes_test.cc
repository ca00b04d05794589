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

TEST(Routes, OnlyHealthAndThePageArePublic) {
  std::set<std::string> open;
  for (const Route& each : routes()) {
    if (each.access == Access::everyone) open.emplace(each.path);
  }
  EXPECT_EQ(open,
            (std::set<std::string>{"/", "/assets/", "/dashboard", "/health", "/livez", "/readyz"}));
}

TEST(Routes, EveryProtocolHasOne) {
  for (const api::Protocol& protocol : api::protocols()) {
    const Route* route = find_route("POST", protocol.path).route;
    ASSERT_NE(route, nullptr) << protocol.path;
    EXPECT_TRUE(route->generates) << protocol.path;
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
