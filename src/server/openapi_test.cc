// The description has every route of the table, and no other; and says what a client must know.
#include "server/openapi.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "server/route.h"

namespace headrace::server {
namespace {

using nlohmann::json;

json description() {
  return json::parse(openapi_text());
}

/// "GET /explain/{}": what follows a path has a name of its own there.
std::string without_name(const std::string& path) {
  const size_t brace = path.find('{');
  return brace == path.npos ? path : path.substr(0, brace) + "{}";
}

std::set<std::string> described() {
  std::set<std::string> out;
  const json all = description();
  for (const auto& [path, methods] : all["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      out.insert((method == "get" ? "GET " : "POST ") + without_name(path));
    }
  }
  return out;
}

TEST(OpenApi, HasEveryRouteAndNoOther) {
  std::set<std::string> routed;
  for (const Route& route : routes()) {
    routed.insert(std::string(route.method) + " " + std::string(route.path) +
                  (route.takes_rest ? "{}" : ""));
  }
  EXPECT_EQ(described(), routed);
}

TEST(OpenApi, SaysWhichRoutesNeedAKey) {
  const json all = description();
  for (const auto& [path, methods] : all["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      std::string asked = path;
      if (const size_t brace = path.find('{'); brace != path.npos) asked.replace(brace, 99, "x");
      const auto found = find_route(method == "get" ? "GET" : "POST", asked);
      ASSERT_NE(found.route, nullptr) << asked;
      const bool is_public = operation.contains("security") && operation["security"].empty();
      EXPECT_EQ(is_public, found.route->access == Access::everyone) << path;
      EXPECT_EQ(operation["responses"].contains("401"), !is_public) << path;
      const bool is_bounded = found.route->generates || found.route->runs_on == RunsOn::long_worker;
      EXPECT_EQ(operation["responses"].contains("429"), is_bounded) << path;
      EXPECT_EQ(operation["responses"].contains("415"), method == "post") << path;
    }
  }
}

/// Every reference leads somewhere.
void check_references(const json& all, const json& value) {
  if (value.is_object() && value.contains("$ref")) {
    const std::string target = value["$ref"];
    ASSERT_EQ(target.substr(0, 2), "#/") << target;
    EXPECT_TRUE(all.contains(json::json_pointer(target.substr(1)))) << target;
  }
  for (const json& each : value) {
    if (each.is_structured()) check_references(all, each);
  }
}

TEST(OpenApi, ReferencesLeadSomewhere) {
  const json all = description();
  EXPECT_EQ(all["openapi"], "3.1.0");
  check_references(all, all);
}

}  // namespace
}  // namespace headrace::server
