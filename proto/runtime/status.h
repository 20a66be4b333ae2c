// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/contract/exit_code.h"

namespace grpc {
class Status;
}

namespace disttrain {

// Codes are equal by number: absl's are gRPC's.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// The error's message; std::string whatever string_view absl was built with.
std::string Message(const absl::Status& status);

// Puts "context: " before the message; OK stays OK.
absl::Status Annotate(const absl::Status& status, const std::string& context);

// Unavailable, DeadlineExceeded, Aborted.
bool IsRetryable(const absl::Status& status);

// OK is kDone, retryable kPeerLost, InvalidArgument and FailedPrecondition
// kConfig, DataLoss kData, the rest kException.
ExitCode ExitCodeFor(const absl::Status& status);

// Waits between tries: `initial`, doubled up to `max`.
struct Backoff {
  absl::Duration initial = absl::Milliseconds(10);
  absl::Duration max = absl::Seconds(1);
};

// Calls `attempt` until it is OK, fails for good (not Unavailable), or
// `deadline` has passed; then the last error.
absl::Status RetryUntil(absl::Time deadline, const Backoff& backoff,
                        const std::function<absl::Status()>& attempt);

}  // namespace disttrain

#define DISTTRAIN_CONCAT_INNER_(a, b) a##b
#define DISTTRAIN_CONCAT_(a, b) DISTTRAIN_CONCAT_INNER_(a, b)

// Returns from the calling function if `expression` is not OK.
#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

// Assigns the value of a StatusOr, or returns its error.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN(target, expression)                              \
  ASSIGN_OR_RETURN_IMPL_(DISTTRAIN_CONCAT_(status_or_, __LINE__), target, \
                         expression)
#define ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                              \
  if (!result.ok()) return result.status();                \
  target = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
