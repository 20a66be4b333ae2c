// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/outcome.h"

#include "c10/util/Exception.h"
#include "gtest/gtest.h"
#include "worker/programs/program.h"
#include "worker/rpc/error.h"

namespace disttrain {
namespace {

template <class E>
ProgramThrew OutcomeOfThrowing(const E& error) {
  return OutcomeOf(std::make_exception_ptr(error));
}

const rpc::CallSite kSite = {.peer = {.rank = 2,
                                      .incarnation = 0,
                                      .role = "observer",
                                      .role_index = 1,
                                      .pod = "p"},
                             .method = "Observer.RunEpisode",
                             .elapsed = absl::Seconds(1)};

TEST(Outcome, OfAnExceptionIsItsTextAndCodeOne) {
  const ProgramThrew outcome =
      OutcomeOfThrowing(std::runtime_error("loss is NaN"));
  EXPECT_EQ(outcome.code, ExitCode::kException);
  EXPECT_EQ(outcome.cause, "loss is NaN");
  EXPECT_FALSE(outcome.peer_lost);
}

TEST(Outcome, OfConfigurationAndDataErrorsIsNoRestart) {
  EXPECT_EQ(OutcomeOfThrowing(ConfigError("quorum")).code, ExitCode::kConfig);
  EXPECT_EQ(OutcomeOfThrowing(DataError("checkpoint")).code, ExitCode::kData);
}

TEST(Outcome, OfALostPeerNamesItsRank) {
  const ProgramThrew outcome = OutcomeOfThrowing(rpc::PeerLost(kSite, "gone"));
  EXPECT_TRUE(outcome.peer_lost);
  EXPECT_EQ(outcome.lost_rank, 2);
}

TEST(Outcome, OfARemoteExceptionIsTheProgramsUnlessThePeerLostAnother) {
  const ProgramThrew thrown =
      OutcomeOfThrowing(rpc::RemoteException(kSite, "division by zero"));
  EXPECT_EQ(thrown.code, ExitCode::kException);
  EXPECT_FALSE(thrown.peer_lost);
  EXPECT_NE(thrown.cause.find("division by zero"), std::string::npos);
  const ProgramThrew nested = OutcomeOfThrowing(
      rpc::RemoteException(kSite, "rank 3 is gone", rpc::ErrorCode::kPeerLost));
  // Which rank that is, rank 0 will say.
  EXPECT_TRUE(nested.broken_off);
  EXPECT_FALSE(nested.lost_rank.has_value());
}

TEST(Outcome, OfACallThatWasBrokenOffMayFollowFromAFailure) {
  EXPECT_TRUE(
      OutcomeOfThrowing(rpc::Cancelled(kSite, "told to stop")).broken_off);
  EXPECT_TRUE(
      OutcomeOfThrowing(rpc::ShuttingDown(kSite, "leaving")).broken_off);
  EXPECT_FALSE(
      OutcomeOfThrowing(rpc::DeadlineExceeded(kSite, "60 s")).broken_off);
}

TEST(Outcome, OfATorchErrorHasNoBacktrace) {
  try {
    TORCH_CHECK(false, "shapes differ");
  } catch (...) {
    const ProgramThrew outcome = OutcomeOf(std::current_exception());
    EXPECT_EQ(outcome.cause.find("Exception raised from"), std::string::npos);
    EXPECT_NE(outcome.cause.find("shapes differ"), std::string::npos);
  }
}

TEST(Outcome, OfSomethingElseSaysSo) {
  EXPECT_EQ(OutcomeOfThrowing(5).cause,
            "the program threw something that is no std::exception");
}

}  // namespace
}  // namespace disttrain
