#include "server/admission.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headrace::server
