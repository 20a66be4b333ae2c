// SPDX-License-Identifier: Apache-2.0
#include "controller/api/names.h"

#include <string>

#include "controller/api/closest_name.h"
#include "controller/api/field_error.h"
#include "controller/api/pattern.h"
#include "gtest/gtest.h"

namespace disttrain {
namespace {

TEST(Names, FollowTheRfcs) {
  EXPECT_TRUE(IsRfc1035Label("a"));
  EXPECT_TRUE(IsRfc1035Label("a-9"));
  EXPECT_FALSE(IsRfc1035Label("9a"));
  EXPECT_TRUE(IsRfc1123Label("9a"));
  for (const char* bad : {"", "-a", "a-", "A", "a_b", "a.b", "ä"}) {
    EXPECT_FALSE(IsRfc1123Label(bad)) << bad;
  }
  EXPECT_TRUE(IsRfc1123Label(std::string(63, 'a')));
  EXPECT_FALSE(IsRfc1123Label(std::string(64, 'a')));
  EXPECT_TRUE(IsDnsSubdomain("a.b-c.9"));
  EXPECT_FALSE(IsDnsSubdomain("a..b"));
  EXPECT_FALSE(IsDnsSubdomain("a."));
  EXPECT_TRUE(IsLabelKey("kueue.x-k8s.io/queue-name"));
  EXPECT_FALSE(IsLabelKey("/x"));
  EXPECT_FALSE(IsLabelKey("a/"));
  EXPECT_TRUE(IsLabelValue("Team_A.1"));
  EXPECT_FALSE(IsLabelValue("-a"));
}

TEST(ClosestName, FindsTypingErrors) {
  const std::vector<std::string> known = {"replicas", "restart", "template",
                                          "gamma"};
  EXPECT_EQ(ClosestName("replcas", known), "replicas");
  EXPECT_EQ(ClosestName("repilcas", known), "replicas");
  EXPECT_EQ(ClosestName("Templates", known), "template");
  EXPECT_EQ(ClosestName("gama", known), "gamma");
  EXPECT_EQ(ClosestName("min_replicas", {"minReplicas"}), "minReplicas");
  EXPECT_EQ(ClosestName("something", known), "");
  EXPECT_EQ(ClosestName("", known), "");
  EXPECT_EQ(ClosestName(std::string(100'000, 'x'), known), "");
}

TEST(Join, QuotesKeysThatAreNoPlainNames) {
  EXPECT_EQ(Join("", "spec"), "spec");
  EXPECT_EQ(Join("spec", "roles"), "spec.roles");
  EXPECT_EQ(Join("spec.roles", size_t{1}), "spec.roles[1]");
  EXPECT_EQ(Join("limits", "nvidia.com/gpu"), "limits[\"nvidia.com/gpu\"]");
}

TEST(Pattern, MatchesAnywhereInLinearTime) {
  EXPECT_TRUE(PatternMatches("NCCL|ECC", "an ECC error"));
  EXPECT_FALSE(PatternMatches("^ECC", "an ECC error"));
  EXPECT_FALSE(PatternMatches("(", "("));
  EXPECT_FALSE(CheckPattern("(").ok());
  // Takes a backtracking matcher 2^40 steps.
  EXPECT_FALSE(PatternMatches("(a|a)*b", std::string(40, 'a')));
}

TEST(Pattern, RefusesWhatNeedsTooMuchMemory) {
  EXPECT_FALSE(CheckPattern("((a{100}){100}){100}").ok());
}

}  // namespace
}  // namespace disttrain
