// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/labels.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

TEST(Labels, TheFirstPodOfAnIndexHasItsHostName) {
  EXPECT_EQ(HostName("cartpole", "observer", 1), "cartpole-observer-1");
  EXPECT_EQ(PodName("cartpole", "observer", 1, 0, 0), "cartpole-observer-1");
}

TEST(Labels, LaterPodsHaveNamesOfTheirOwn) {
  EXPECT_EQ(PodName("cartpole", "observer", 1, 2, 0), "cartpole-observer-1-r2");
  EXPECT_EQ(PodName("cartpole", "observer", 1, 0, 3), "cartpole-observer-1-i3");
  EXPECT_EQ(PodName("cartpole", "observer", 1, 2, 3),
            "cartpole-observer-1-r2-i3");
}

}  // namespace
}  // namespace disttrain
