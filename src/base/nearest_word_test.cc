#include "base/nearest_word.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("run", "run"), 0u);
  EXPECT_EQ(edit_distance("run", "rum"), 1u);
  EXPECT_EQ(edit_distance("run", "runs"), 1u);
  EXPECT_EQ(edit_distance("rnu", "run"), 1u);  // a swap is one
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearestWord, FindsWhatWasMeantAndNothingElse) {
  const std::vector<std::string> words = {"--temp", "--top-k", "--top-p", "-p", "-n"};
  EXPECT_EQ(nearest_word("--tmp", words), "--temp");
  EXPECT_EQ(nearest_word("--topk", words), "--top-k");
  EXPECT_EQ(nearest_word("--top-q", words), "--top-k");  // the first of equals
  EXPECT_EQ(nearest_word("--zebra", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(100000, 'x'), words), "");
  EXPECT_EQ(nearest_word("anything", {}), "");
}

}  // namespace
}  // namespace headrace
