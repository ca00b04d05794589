#include "server/access.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace headrace::server {
namespace {

HttpRequest with(std::vector<HttpHeader> headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

TEST(ApiKeys, AreFoundByEitherHeader) {
  const std::vector<ApiKey> keys = {api_key("one", "a"), api_key("two", "b")};
  const auto owner_of = [&](const HttpRequest& request) {
    const ApiKey* key = find_key(keys, given_key(request));
    return key == nullptr ? "" : key->owner;
  };
  EXPECT_EQ(owner_of(with({{"authorization", "Bearer two"}})), "b");
  EXPECT_EQ(owner_of(with({{"authorization", "bearer   one"}})), "a");
  EXPECT_EQ(owner_of(with({{"x-api-key", "one"}})), "a");
  EXPECT_EQ(owner_of(with({{"authorization", "Bearer"}})), "");
  EXPECT_EQ(owner_of(with({{"authorization", "Bearer "}})), "");
  EXPECT_EQ(owner_of(with({{"authorization", "Basic one"}})), "");
  EXPECT_EQ(owner_of(with({{"authorization", "Bearer on"}})), "");
  EXPECT_EQ(owner_of(with({})), "");
}

TEST(ApiKeys, FileHasSettings) {
  const auto keys = parse_api_keys(
      "# of the team\n\nfirst owner=web max-requests=4 priority=-2\r\n\tsecond\n", "keys.txt");
  ASSERT_TRUE(keys.ok()) << keys.error().to_string();
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ((*keys)[0].owner, "web");
  EXPECT_EQ((*keys)[0].max_requests, 4);
  EXPECT_EQ((*keys)[0].priority, -2);
  EXPECT_EQ((*keys)[1].owner, "key-2");
  EXPECT_EQ(find_key(*keys, "second"), &(*keys)[1]);
  const auto later = parse_api_keys("third\n", "keys.txt", 2);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->front().owner, "key-3");
}

TEST(ApiKeys, FaultsNameTheLine) {
  for (const char* wrong : {"k owner", "k owner=", "k max-requests=0", "k max-requests=x",
                            "k priority=9", "k other=1", "k owner=key-1"}) {
    const auto keys = parse_api_keys("ok\n" + std::string(wrong), "keys.txt");
    ASSERT_FALSE(keys.ok()) << wrong;
    EXPECT_EQ(keys.error().where, "keys.txt:2");
  }
  EXPECT_FALSE(parse_api_keys("same\nsame\n", "k").ok());
  EXPECT_FALSE(parse_api_keys("# nothing\n", "k").ok());
}

TEST(ApiKeys, FirstOfAFile) {
  const std::string path = testing::TempDir() + "first_key_test";
  std::ofstream(path) << "# ours\r\n\n  first owner=web\r\nsecond\n";
  const auto key = first_api_key(path);
  ASSERT_TRUE(key.ok()) << key.error().to_string();
  EXPECT_EQ(*key, "first");
  std::ofstream(path) << "# nothing\n";
  EXPECT_FALSE(first_api_key(path).ok());
  std::remove(path.c_str());
  EXPECT_FALSE(first_api_key(path).ok());
}

TEST(AllowedPriority, AloneAClientMayHaveAny) {
  EXPECT_EQ(allowed_priority({}, nullptr, -8), -8);
  EXPECT_EQ(allowed_priority({}, nullptr, 8), 8);
  std::vector<ApiKey> keys = {api_key("a", "a")};
  keys[0].priority = 3;
  EXPECT_EQ(allowed_priority(keys, &keys[0], -5), -2);
  EXPECT_EQ(allowed_priority(keys, &keys[0], 7), 8);
}

TEST(AllowedPriority, AmongOthersNoneComesBeforeItsKey) {
  std::vector<ApiKey> keys = {api_key("a", "a"), api_key("b", "b")};
  keys[1].priority = 3;
  EXPECT_EQ(allowed_priority(keys, &keys[0], -8), 0);
  EXPECT_EQ(allowed_priority(keys, &keys[0], 2), 2);
  EXPECT_EQ(allowed_priority(keys, &keys[1], -8), 3);
  EXPECT_EQ(allowed_priority(keys, &keys[1], 0), 3);
  EXPECT_EQ(allowed_priority(keys, &keys[1], 7), 8);
  keys[0].priority = -4;
  EXPECT_EQ(allowed_priority(keys, &keys[0], -8), -4);
}

TEST(HostName, IsWithoutPort) {
  EXPECT_EQ(host_name("LocalHost:8080"), "localhost");
  EXPECT_EQ(host_name("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_name("example.org"), "example.org");
}

TEST(OriginFault, KnowsHostsAndOrigins) {
  OriginPolicy policy;
  policy.hosts = {"localhost"};
  policy.origins = {"https://app.example"};
  const auto fault = [&](const char* host, const char* origin) {
    std::vector<HttpHeader> headers = {{"host", host}};
    if (origin != nullptr) headers.push_back({"origin", origin});
    return origin_fault(policy, with(std::move(headers))).has_value();
  };
  EXPECT_FALSE(fault("localhost:8080", nullptr));
  EXPECT_TRUE(fault("evil.example", nullptr));
  EXPECT_TRUE(fault("", nullptr));
  EXPECT_FALSE(fault("localhost:8080", "http://localhost:8080"));
  EXPECT_TRUE(fault("localhost:8080", "http://localhost:9090"));
  EXPECT_TRUE(fault("localhost:8080", "https://evil.example"));
  EXPECT_TRUE(fault("localhost:8080", "null"));
  EXPECT_FALSE(fault("localhost:8080", "https://app.example"));
  EXPECT_TRUE(is_listed_origin(policy, with({{"origin", "https://app.example"}})));
  policy.hosts.clear();
  EXPECT_FALSE(fault("anything", nullptr));
}

}  // namespace
}  // namespace headrace::server
