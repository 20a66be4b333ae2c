// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/call_metrics.h"

namespace disttrain {
namespace {

// The label's value.
std::string_view CodeOf(rpc::ErrorCode outcome) {
  switch (outcome) {
    case rpc::ErrorCode::kOk:
      return "ok";
    case rpc::ErrorCode::kDeadlineExceeded:
      return "deadline";
    case rpc::ErrorCode::kPeerLost:
      return "peer_lost";
    case rpc::ErrorCode::kCancelled:
      return "cancelled";
    default:
      return "error";
  }
}

}  // namespace

void CallMetrics::OnCallDone(const rpc::CallRecord& record) {
  if (record.side != rpc::CallRecord::Side::kCaller) return;
  metrics_.RpcCallDone(record.method, record.peer_role, CodeOf(record.outcome),
                       record.duration);
}

}  // namespace disttrain
