// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/parameters.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/runtime/status.h"
#include "worker/programs/reinforce/parameters.h"

namespace disttrain {
namespace {

using ::testing::HasSubstr;

struct Example {
  double gamma = 0.99;
  int64_t seed = 543;
  bool verbose = false;
  std::string device = "cpu";
  double dropout = 0.5;

  void Visit(ParameterList& p) {
    p("gamma", gamma, "discount of later rewards", Range::Closed(0, 1));
    p("seed", seed, "seed of all random numbers", Range::AtLeast(0));
    p("verbose", verbose, "says more");
    p("device", device, "where to compute");
    p("dropout", dropout, "share dropped", Range::HalfOpen(0, 1));
  }
};

std::string ErrorOf(std::string_view json) {
  const absl::StatusOr<Example> result = ParseParameters<Example>(json);
  if (result.ok()) return "";
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return Message(result.status());
}

TEST(Parameters, KeepDefaultsForAbsentNames) {
  const auto result = ParseParameters<Example>(R"({"seed": 7})");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->seed, 7);
  EXPECT_EQ(result->gamma, 0.99);
  EXPECT_EQ(result->device, "cpu");
}

TEST(Parameters, TakeEveryType) {
  const auto result = ParseParameters<Example>(
      R"({"gamma": 1, "seed": 0, "verbose": true, "device": "gpu"})");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->gamma, 1.0);  // an integer is a number
  EXPECT_EQ(result->seed, 0);
  EXPECT_TRUE(result->verbose);
  EXPECT_EQ(result->device, "gpu");
}

TEST(Parameters, SuggestTheNameThatWasMeant) {
  EXPECT_EQ(ErrorOf(R"({"gama": 1})"),
            "spec.parameters.gama: unknown parameter, did you mean gamma? "
            "(known: device, dropout, gamma, seed, verbose)");
  EXPECT_THAT(ErrorOf(R"({"GAMMA": 1})"), HasSubstr("did you mean gamma?"));
  EXPECT_EQ(ErrorOf(R"({"episodes": 1})"),
            "spec.parameters.episodes: unknown parameter "
            "(known: device, dropout, gamma, seed, verbose)");
}

TEST(Parameters, RefuseAnotherType) {
  EXPECT_EQ(ErrorOf(R"({"seed": "x"})"),
            "spec.parameters.seed is \"x\", must be an integer >= 0");
  EXPECT_EQ(ErrorOf(R"({"seed": 1.5})"),
            "spec.parameters.seed is 1.5, must be an integer >= 0");
  EXPECT_EQ(ErrorOf(R"({"seed": true})"),
            "spec.parameters.seed is true, must be an integer >= 0");
  EXPECT_EQ(ErrorOf(R"({"verbose": 1})"),
            "spec.parameters.verbose is 1, must be a boolean");
  EXPECT_EQ(ErrorOf(R"({"device": null})"),
            "spec.parameters.device is null, must be a string");
  EXPECT_EQ(ErrorOf(R"({"gamma": [1]})"),
            "spec.parameters.gamma is [1], must be a number >= 0 and <= 1");
}

TEST(Parameters, RefuseValuesOutOfRange) {
  EXPECT_EQ(ErrorOf(R"({"gamma": 1.01})"),
            "spec.parameters.gamma is 1.01, must be a number >= 0 and <= 1");
  EXPECT_EQ(ErrorOf(R"({"dropout": 1})"),
            "spec.parameters.dropout is 1, must be a number >= 0 and < 1");
  EXPECT_EQ(ErrorOf(R"({"seed": 9223372036854775808})"),
            "spec.parameters.seed is 9223372036854775808, must be an integer "
            ">= 0");
  EXPECT_TRUE(ParseParameters<Example>(R"({"dropout": 0})").ok());
}

TEST(Parameters, ReportAllMistakesTogether) {
  EXPECT_THAT(ErrorOf(R"({"gama": 1, "seed": -1})"),
              testing::AllOf(HasSubstr("spec.parameters.gama: unknown"),
                             HasSubstr("; spec.parameters.seed is -1")));
}

TEST(Parameters, ChangeNothingWhenOneIsWrong) {
  Example example;
  ParameterList list;
  example.Visit(list);
  EXPECT_FALSE(list.Assign(R"({"gamma": 0.5, "seed": "x"})").ok());
  EXPECT_EQ(example.gamma, 0.99);
}

TEST(Parameters, RefuseWhatIsNoObject) {
  EXPECT_EQ(ErrorOf("{"), "spec.parameters is not JSON");
  EXPECT_EQ(ErrorOf("[1]"),
            "spec.parameters is [1], must be an object of names and values");
  EXPECT_EQ(ErrorOf(std::string(kMaxParametersBytes + 1, ' ')),
            "spec.parameters has 65537 bytes, must have at most 65536");
  const std::string deep(kMaxParametersBytes, '[');
  EXPECT_EQ(ErrorOf(deep), "spec.parameters is not JSON");
}

TEST(Parameters, CutLongValuesInMessages) {
  const std::string error =
      ErrorOf(R"({"seed": ")" + std::string(1000, 'x') + R"("})");
  EXPECT_LT(error.size(), 200U);
  EXPECT_THAT(error, HasSubstr("xxx..., must be"));
}

TEST(Parameters, DescribeThemselvesWithTheWordsOfJsonSchema) {
  const nlohmann::json schema = ToJson(Describe<Example>());
  EXPECT_EQ(schema[0], nlohmann::json({{"name", "gamma"},
                                       {"type", "number"},
                                       {"default", 0.99},
                                       {"meaning", "discount of later rewards"},
                                       {"minimum", 0.0},
                                       {"maximum", 1.0}}));
  EXPECT_EQ(schema[1]["type"], "integer");
  EXPECT_EQ(schema[2]["type"], "boolean");
  EXPECT_EQ(schema[2]["default"], false);
  EXPECT_EQ(schema[3]["type"], "string");
  EXPECT_EQ(schema[4]["exclusiveMaximum"], 1.0);
}

TEST(ReinforceParameters, HaveUpstreamsValuesAsDefaults) {
  const auto result = ParseParameters<ReinforceParameters>("{}");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->gamma, 0.99);
  EXPECT_EQ(result->seed, 543);
  EXPECT_EQ(result->log_interval, 10);
  EXPECT_EQ(result->learning_rate, 1e-2);
  EXPECT_EQ(result->dropout, 0.6);
  EXPECT_EQ(result->hidden, 128);
  EXPECT_EQ(result->reward_threshold, 475);
  EXPECT_EQ(result->quorum, 0);
}

}  // namespace
}  // namespace disttrain
