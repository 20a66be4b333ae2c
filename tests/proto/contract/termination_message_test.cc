// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/termination_message.h"

#include <gtest/gtest.h>

#include <limits>

#include "nlohmann/json.hpp"

namespace disttrain {
namespace {

// https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
constexpr size_t kKubernetesLimit = 4096;

TEST(TerminationMessage, IsTheLineThatItsHeaderShows) {
  EXPECT_EQ(ToJson({.rank = 2,
                    .role = "observer",
                    .cause = "...",
                    .step = 40,
                    .exit_code = 1,
                    .time_ms = 1767607200000}),
            R"({"rank":2,"role":"observer","cause":"...","step":40,)"
            R"("exitCode":1,"timeMs":1767607200000})");
}

TEST(TerminationMessage, ComesBackAsItWas) {
  const auto back = ParseTerminationMessage(ToJson({.rank = 2,
                                                    .role = "observer",
                                                    .cause = "lost \"it\"\n",
                                                    .step = int64_t{1} << 40,
                                                    .exit_code = 75,
                                                    .time_ms = 1767607200000,
                                                    .failed_rank = 0,
                                                    .reward = 475.5,
                                                    .loss = -0.25}));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->rank, 2);
  EXPECT_EQ(back->role, "observer");
  EXPECT_EQ(back->cause, "lost \"it\"\n");
  EXPECT_EQ(back->step, int64_t{1} << 40);
  EXPECT_EQ(back->exit_code, 75);
  EXPECT_EQ(back->time_ms, 1767607200000);
  EXPECT_EQ(back->failed_rank, 0);
  EXPECT_EQ(back->reward, 475.5);
  EXPECT_EQ(back->episode_reward, std::nullopt);
  EXPECT_EQ(back->loss, -0.25);
}

TEST(TerminationMessage, FitsWhateverTheCause) {
  for (const std::string& cause :
       {std::string(100000, 'x'), std::string(100000, '\x01'),
        std::string(2999, 'x') + "€€€", std::string(5000, '\xff')}) {
    const std::string line = ToJson({.cause = cause});
    EXPECT_LE(line.size(), kKubernetesLimit);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto json = nlohmann::json::parse(line);
    EXPECT_FALSE(json["cause"].get<std::string>().empty());
  }
  EXPECT_EQ(
      ParseTerminationMessage(ToJson({.cause = std::string(2999, 'x') + "€€€"}))
          ->cause,
      std::string(2999, 'x') + "…")
      << "cut between characters";
}

TEST(TerminationMessage, LeavesOutWhatIsNotFinite) {
  const std::string line =
      ToJson({.reward = std::numeric_limits<double>::infinity(),
              .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(line.find("reward"), std::string::npos);
  EXPECT_EQ(line.find("loss"), std::string::npos);
}

TEST(TerminationMessage, IsNotWhatAForeignProgramWrites) {
  for (const char* text :
       {"", "Segmentation fault", "{", "[]", "7", "{\"rank\":1}",
        R"({"cause":"x"})", R"({"rank":"1","cause":"x"})",
        R"({"rank":5000000000,"cause":"x"})", R"({"rank":-1,"cause":"x"})",
        R"({"rank":18446744073709551615,"cause":"x"})"}) {
    EXPECT_FALSE(ParseTerminationMessage(text).has_value()) << text;
  }
}

TEST(TerminationMessage, KeepsDefaultsForFieldsOfAnotherKind) {
  const auto message = ParseTerminationMessage(
      R"({"rank":1,"cause":2,"step":"x","exitCode":99999999999,)"
      R"("failedRank":-5,"reward":"high"})");
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->cause, "");
  EXPECT_EQ(message->step, 0);
  EXPECT_EQ(message->exit_code, 0);
  EXPECT_EQ(message->failed_rank, std::nullopt);
  EXPECT_EQ(message->reward, std::nullopt);
}

}  // namespace
}  // namespace disttrain
