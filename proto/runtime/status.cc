// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/status.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "grpcpp/support/status.h"

namespace disttrain {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Message(status));
}

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), context + ": " + Message(status));
}

bool IsRetryable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsAborted(status);
}

ExitCode ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return ExitCode::kDone;
  if (IsRetryable(status)) return ExitCode::kPeerLost;
  if (absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status))
    return ExitCode::kConfig;
  if (absl::IsDataLoss(status)) return ExitCode::kData;
  return ExitCode::kException;
}

absl::Status RetryUntil(absl::Time deadline, const Backoff& backoff,
                        const std::function<absl::Status()>& attempt) {
  absl::Duration wait = backoff.initial;
  while (true) {
    absl::Status status = attempt();
    if (!absl::IsUnavailable(status)) return status;
    const absl::Time now = absl::Now();
    if (now >= deadline) return status;
    absl::SleepFor(std::min(wait, deadline - now));
    wait = std::min(wait * 2, backoff.max);
  }
}

}  // namespace disttrain
