// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/error_codes.h"

#include <array>
#include <utility>

namespace disttrain::rpc::internal {
namespace {

constexpr std::array<std::pair<ErrorCode, v1::Error::Kind>, 9> kKinds = {{
    {ErrorCode::kRemoteException, v1::Error::KIND_REMOTE_EXCEPTION},
    {ErrorCode::kUnknownMethod, v1::Error::KIND_UNKNOWN_METHOD},
    {ErrorCode::kInvalidArgument, v1::Error::KIND_INVALID_ARGUMENT},
    {ErrorCode::kDeadlineExceeded, v1::Error::KIND_DEADLINE_EXCEEDED},
    {ErrorCode::kCancelled, v1::Error::KIND_CANCELLED},
    {ErrorCode::kReferenceLost, v1::Error::KIND_REFERENCE_LOST},
    {ErrorCode::kShuttingDown, v1::Error::KIND_SHUTTING_DOWN},
    {ErrorCode::kPeerLost, v1::Error::KIND_PEER_LOST},
    {ErrorCode::kOverloaded, v1::Error::KIND_OVERLOADED},
}};

}  // namespace

v1::Error::Kind KindOf(ErrorCode code) {
  for (const auto& [own, wire] : kKinds) {
    if (own == code) return wire;
  }
  return v1::Error::KIND_UNSPECIFIED;
}

ErrorCode CodeOf(v1::Error::Kind kind) {
  for (const auto& [own, wire] : kKinds) {
    if (wire == kind) return own;
  }
  return ErrorCode::kRemoteException;
}

}  // namespace disttrain::rpc::internal
