#include "model/cache_groups.h"

#include <gtest/gtest.h>

#include <array>

namespace headrace {
namespace {

TEST(CacheGroups, EqualSpecsShareAGroupInOrderOfAppearance) {
  const CacheSpec full{CacheSpec::Kind::paged, 2, 64, 0};
  const CacheSpec local{CacheSpec::Kind::window, 2, 64, 512};
  const CacheSpec none{CacheSpec::Kind::none, 0, 0, 0};
  const std::array specs = {local, local, full, none, local};
  const CacheGroups groups = group_layers(specs);
  ASSERT_EQ(groups.groups.size(), 2U);
  EXPECT_EQ(groups.groups[0].spec, local);
  EXPECT_EQ(groups.groups[0].num_layers, 3);
  EXPECT_EQ(groups.groups[1].num_layers, 1);
  ASSERT_EQ(groups.layers.size(), 5U);
  EXPECT_EQ(groups.layers[2].group, 1);
  EXPECT_EQ(groups.layers[3].group, -1);
  EXPECT_EQ(groups.layers[4].group, 0);
  EXPECT_EQ(groups.layers[4].layer_in_group, 2);
}

}  // namespace
}  // namespace headrace
