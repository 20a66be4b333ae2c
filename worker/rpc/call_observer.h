// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/time/time.h"
#include "worker/rpc/error.h"
#include "worker/rpc/peer.h"

namespace disttrain::rpc {

// One call that has ended.
struct CallRecord {
  enum class Side { kCaller, kCallee };
  Side side = Side::kCaller;
  // "Observer.RunEpisode"; "Observer" for a creation. "unknown" at a callee
  // that has no such method, so that peers cannot make label values.
  std::string_view method;
  std::string_view peer_role;  // of the other side
  ErrorCode outcome = ErrorCode::kOk;
  absl::Duration duration;
};

// What metrics see of calls.
//
// Threads: called on any thread, also on the one that reads the network: must
// be quick, must not block, and must not call back into the agent.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void OnCallDone(const CallRecord& record) = 0;
};

// Gauges of one moment.
struct AgentStatistics {
  int64_t outgoing_calls = 0;      // made here, not answered yet
  int64_t incoming_calls = 0;      // running here, deferred ones too
  int64_t owned_objects = 0;       // objects that live here
  int64_t owned_forks = 0;         // holds of other processes on them
  int64_t remote_references = 0;   // objects of others held here
  int64_t pending_forks = 0;       // asked for, not confirmed yet
  int64_t call_threads = 0;        // threads beside the transport's
  int64_t malformed_messages = 0;  // refused since the start
};

}  // namespace disttrain::rpc
