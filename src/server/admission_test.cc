#include "server/admission.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace headrace::server {
namespace {

using std::chrono::seconds;

class AdmissionOfThree : public testing::Test {
 protected:
  std::unique_ptr<Admission::Ticket> enter(const std::string& owner = "", int64_t limit = 0,
                                           int64_t bytes = 10) {
    return admission.enter(owner, limit, bytes, now, refusal);
  }

  Admission admission{AdmissionLimits{.max_requests = 3, .max_waiting_bytes = 100}};
  Admission::Time now{seconds(1000)};
  std::optional<Refusal> refusal;
};

TEST_F(AdmissionOfThree, RefusesTheFourth) {
  std::vector<std::unique_ptr<Admission::Ticket>> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(enter());
  EXPECT_EQ(admission.num_inside(), 3);
  EXPECT_EQ(enter(), nullptr);
  ASSERT_TRUE(refusal);
  EXPECT_GE(refusal->retry_after_seconds, 1);
  EXPECT_TRUE(admission.check("", 0, 0, now));
  tickets.pop_back();
  EXPECT_FALSE(admission.check("", 0, 0, now));
  EXPECT_NE(enter(), nullptr);
}

TEST_F(AdmissionOfThree, AKeyHasItsOwnLimit) {
  const auto first = enter("a", 1);
  EXPECT_EQ(enter("a", 1), nullptr);
  EXPECT_NE(enter("b", 1), nullptr);
}

TEST_F(AdmissionOfThree, BytesCountUntilTheyAreTokens) {
  const auto first = enter("", 0, 90);
  EXPECT_EQ(enter("", 0, 20), nullptr);
  first->tokenized();
  // One alone may be as long as bodies may be.
  const auto second = enter("", 0, 1000);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(enter("", 0, 1), nullptr);
}

TEST_F(AdmissionOfThree, RetryAfterFollowsTheRate) {
  std::vector<std::unique_ptr<Admission::Ticket>> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(enter());
  for (int i = 0; i < 600; ++i) {
    now += std::chrono::milliseconds(100);
    admission.count_done(now);
  }
  EXPECT_EQ(admission.retry_after_seconds(now), 1);  // ten a second
  now += seconds(200);
  EXPECT_GT(admission.retry_after_seconds(now), 30);  // nothing for minutes
  EXPECT_LE(admission.retry_after_seconds(now), 120);
}

using Tickets = std::vector<std::unique_ptr<Admission::Ticket>>;

/// Seven places, and owners with as many requests inside as the test wants.
class AdmissionOfSeven : public testing::Test {
 protected:
  /// Whether one more of `owner` came in.
  bool enter(const std::string& owner, int64_t limit = 0) {
    auto ticket = admission.enter(owner, limit, 10, now, refusal);
    if (!ticket) return false;
    inside[owner].push_back(std::move(ticket));
    return true;
  }
  /// As many as come in of so many that ask.
  size_t enter_all(const std::string& owner, int num) {
    for (int i = 0; i < num; ++i) enter(owner);
    return inside[owner].size();
  }
  void leave(const std::string& owner) { inside[owner].pop_back(); }

  Admission admission{AdmissionLimits{.max_requests = 7}};
  Admission::Time now{seconds(1000)};
  std::optional<Refusal> refusal;
  std::map<std::string, Tickets> inside;
};

TEST_F(AdmissionOfSeven, OneAloneMayHaveAll) {
  EXPECT_EQ(enter_all("a", 14), 7U);
  leave("a");
  EXPECT_TRUE(enter("a"));
}

TEST_F(AdmissionOfSeven, APlaceThatGetsFreeIsForWhoWasRefused) {
  EXPECT_EQ(enter_all("a", 14), 7U);
  EXPECT_FALSE(enter("b"));
  for (size_t of_b = 1; of_b <= 3; ++of_b) {
    leave("a");
    EXPECT_EQ(enter_all("a", 14), 7 - of_b) << "a asks more often than b";
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->message.find("share"), std::string::npos);
    EXPECT_TRUE(enter("b"));
    EXPECT_EQ(inside["b"].size(), of_b);
  }
  // Three of seven each is the share: the last is for who comes first.
  leave("a");
  EXPECT_TRUE(enter("a"));
}

TEST_F(AdmissionOfSeven, TheGateCountsAsAsking) {
  EXPECT_EQ(enter_all("a", 7), 7U);
  EXPECT_TRUE(admission.check("b", 0, 0, now));
  leave("a");
  EXPECT_TRUE(admission.check("a", 0, 0, now));
  EXPECT_FALSE(admission.check("b", 0, 0, now));
}

TEST_F(AdmissionOfSeven, WhoAsksForLittleLeavesTheRest) {
  EXPECT_TRUE(enter("b"));
  EXPECT_EQ(enter_all("a", 14), 5U);  // one is kept for b, not all of its share
  EXPECT_TRUE(enter("b"));
}

TEST_F(AdmissionOfSeven, WhoAskedLongAgoIsForgotten) {
  EXPECT_EQ(enter_all("a", 7), 7U);
  EXPECT_FALSE(enter("b"));
  leave("a");
  now += Admission::kActive + seconds(refusal->retry_after_seconds);
  EXPECT_FALSE(enter("a"));
  now += seconds(1);
  EXPECT_TRUE(enter("a"));
}

TEST_F(AdmissionOfSeven, NothingIsKeptForWhoAskedLongAgo) {
  EXPECT_TRUE(enter("b"));
  now += 10 * Admission::kActive;
  EXPECT_EQ(enter_all("a", 14), 6U);
  EXPECT_FALSE(enter("b"));  // but it is inside still, and asks again
  leave("a");
  EXPECT_FALSE(enter("a"));
  EXPECT_TRUE(enter("b"));
}

TEST_F(AdmissionOfSeven, NothingIsKeptForAKeyAtItsOwnLimit) {
  EXPECT_TRUE(enter("b", 1));
  EXPECT_EQ(enter_all("a", 14), 6U);
}

TEST_F(AdmissionOfSeven, OfMoreOwnersThanPlacesEachMayHaveOne) {
  for (int i = 0; i < 20; ++i) enter(std::to_string(i));
  EXPECT_EQ(admission.num_inside(), 7);
  leave("0");
  for (int i = 1; i < 7; ++i) EXPECT_FALSE(enter(std::to_string(i)));
  EXPECT_TRUE(enter("19"));
}

}  // namespace
}  // namespace headrace::server
