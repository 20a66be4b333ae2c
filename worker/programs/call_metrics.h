// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/rpc/call_observer.h"
#include "worker/telemetry/metrics.h"

namespace disttrain {

// Hands what the RPC layer tells of its calls to the metrics.
//
// Threads: thread-safe.
class CallMetrics : public rpc::CallObserver {
 public:
  // Borrows `metrics`.
  explicit CallMetrics(Metrics& metrics) : metrics_(metrics) {}
  void OnCallDone(const rpc::CallRecord& record) override;

 private:
  Metrics& metrics_;
};

}  // namespace disttrain
