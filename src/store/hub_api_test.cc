#include "store/hub_api.h"

#include <gtest/gtest.h>

#include <random>

#include "store/http_download.h"

namespace headrace {
namespace {

const std::string kCommitText = "0123456789abcdef0123456789abcdef01234567";
const std::string kSum = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

std::string listing_of(const std::string& siblings, const std::string& more = "") {
  return R"({"sha": ")" + kCommitText + R"(", )" + more + R"("siblings": [)" + siblings + "]}";
}

TEST(HubApi, ReadsAListing) {
  const auto listing = parse_listing(listing_of(
      R"({"rfilename": "a.gguf", "size": 130, "blobId": ")" + kCommitText +
          R"(", "lfs": {"sha256": ")" + kSum + R"(", "size": 99}}, {"rfilename": "c.json",)" +
          R"( "size": 7, "blobId": ")" + kCommitText + R"("}, {"rfilename": "plain"})",
      R"("gated": "auto", "cardData": {"license": "other", "license_name": "mine"}, )"));
  ASSERT_TRUE(listing.ok()) << listing.error().to_string();
  EXPECT_EQ(listing->commit, kCommitText);
  EXPECT_EQ(listing->license, "mine");
  EXPECT_TRUE(listing->is_gated);
  ASSERT_EQ(listing->files.size(), 3u);
  EXPECT_EQ(listing->files[0].sha256, kSum);
  EXPECT_EQ(listing->files[0].size_bytes, 99u);
  EXPECT_EQ(listing->files[0].blob_id, "");
  EXPECT_EQ(listing->files[1].blob_id, kCommitText);
  EXPECT_EQ(listing->files[2].size_bytes, 0u);
  EXPECT_EQ(parse_listing(listing_of("", R"("tags": [1, "license:mit"], )"))->license, "mit");
}

TEST(HubApi, RefusesWhatIsNone) {
  const std::string deep(100'000, '[');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), deep,
        std::string(R"({"sha": "abc", "siblings": []})"),
        R"({"sha": ")" + kCommitText + R"(", "siblings": {}})", listing_of(R"({"size": 1})"),
        listing_of(R"("name")"), listing_of(R"({"rfilename": "../x"})"),
        listing_of(R"({"rfilename": "x", "lfs": {"sha256": "../../x"}})"),
        listing_of(R"({"rfilename": "x", "blobId": "x"})")}) {
    const auto listing = parse_listing(text);
    ASSERT_FALSE(listing.ok()) << text.substr(0, 100);
    EXPECT_EQ(listing.error().code, ErrorCode::corrupt_data);
  }
}

TEST(HubApi, AMutatedListingIsReadOrRefused) {
  const std::string good =
      listing_of(R"({"rfilename": "a.gguf", "lfs": {"sha256": ")" + kSum + R"("}})");
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    const auto listing = parse_listing(text);
    EXPECT_TRUE(!listing.ok() || is_commit(listing->commit));
  }
}

TEST(HubApi, MakesAddresses) {
  EXPECT_EQ(listing_url("https://hub", "org/repo", "refs/pr/1"),
            "https://hub/api/models/org/repo/revision/refs%2Fpr%2F1?blobs=true");
  EXPECT_EQ(file_url("https://hub", "org/repo", "main", "a b/#c?.gguf"),
            "https://hub/org/repo/resolve/main/a%20b/%23c%3F.gguf");
}

TEST(RetryAfter, ReadsSecondsAndDates) {
  EXPECT_EQ(retry_after_seconds("7"), 7);
  EXPECT_EQ(retry_after_seconds("Thu, 01 Jan 1970 00:00:10 GMT"), 0);
  EXPECT_GT(retry_after_seconds("Fri, 01 Jan 2100 00:00:00 GMT").value_or(0), 1000);
  EXPECT_EQ(retry_after_seconds("-1"), std::nullopt);
  EXPECT_EQ(retry_after_seconds("soon"), std::nullopt);
}

}  // namespace
}  // namespace headrace
