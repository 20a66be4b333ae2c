// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/status.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "grpcpp/support/status.h"

namespace disttrain {
namespace {

constexpr Backoff kAtOnce = {absl::ZeroDuration(), absl::ZeroDuration()};

TEST(Status, GoesToGrpcAndBack) {
  // Each code that there is (grpc/status.h).
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    const grpc::Status there = ToGrpc(status);
    EXPECT_EQ(static_cast<int>(there.error_code()), code);
    EXPECT_EQ(FromGrpc(there), status);
  }
}

TEST(Status, AnnotatesErrorsOnly) {
  EXPECT_EQ(Annotate(absl::NotFoundError("no pod"), "reading a"),
            absl::NotFoundError("reading a: no pod"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "reading a").ok());
}

TEST(Status, HasTheExitCodesOfItsTable) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), ExitCode::kDone);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("")), ExitCode::kPeerLost);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), ExitCode::kPeerLost);
  EXPECT_EQ(ExitCodeFor(absl::AbortedError("")), ExitCode::kPeerLost);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), ExitCode::kConfig);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("")), ExitCode::kConfig);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), ExitCode::kData);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), ExitCode::kException);
}

TEST(RetryUntil, TriesAgainOnlyWhileUnavailable) {
  int tries = 0;
  EXPECT_TRUE(RetryUntil(absl::InfiniteFuture(), kAtOnce, [&] {
                return ++tries < 3 ? absl::UnavailableError("starting")
                                   : absl::OkStatus();
              }).ok());
  EXPECT_EQ(tries, 3);
  tries = 0;
  EXPECT_TRUE(absl::IsAborted(RetryUntil(absl::InfiniteFuture(), kAtOnce, [&] {
    ++tries;
    return absl::AbortedError("over");
  })));
  EXPECT_EQ(tries, 1);
}

TEST(RetryUntil, GivesTheLastErrorAtTheDeadline) {
  EXPECT_EQ(RetryUntil(absl::Now() - absl::Seconds(1), kAtOnce,
                       [] { return absl::UnavailableError("starting"); }),
            absl::UnavailableError("starting"));
}

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}

absl::StatusOr<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(StatusMacros, ReturnTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_TRUE(absl::IsInvalidArgument(Quarter(3).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Quarter(6).status()));
}

}  // namespace
}  // namespace disttrain
