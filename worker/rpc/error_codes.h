// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disttrain/v1/rpc.pb.h"
#include "worker/rpc/error.h"

namespace disttrain::rpc::internal {

// Between our codes and the wire's. Unknown kinds of a peer are
// kRemoteException.
v1::Error::Kind KindOf(ErrorCode code);
ErrorCode CodeOf(v1::Error::Kind kind);

}  // namespace disttrain::rpc::internal
