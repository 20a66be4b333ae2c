// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/rpc_metrics.h"

#include <algorithm>

#include "proto/contract/metric_names.h"

namespace disttrain {
namespace {

// Each has 14 series; with "other" and all else the process stays below 200.
constexpr size_t kMaxPairs = 8;
// From a local call to one that trains an episode.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.0001, 0.001, 0.01,
                                                          0.1,    1,     10};

// Adds what `total` has grown by since `last`.
void Raise(prometheus::Counter& counter, uint64_t total, uint64_t& last) {
  if (total <= last) return;
  counter.Increment(static_cast<double>(total - last));
  last = total;
}

}  // namespace

RpcMetrics::RpcMetrics(const Families& families)
    : durations_(families.Histograms(
          metric::kRpcCallDuration,
          "Duration of remote calls made by this process, in seconds.")),
      calls_(families.Counters(metric::kRpcCalls,
                               "Remote calls made by this process that ended, "
                               "by outcome.")),
      in_flight_(families.Gauge(metric::kRpcCallsInFlight,
                                "Remote calls made and not answered yet.")),
      active_(families.Gauge(metric::kRpcCallsActive,
                             "Calls of peers that are running here.")),
      sent_(families.Counter(metric::kRpcSentBytes,
                             "Bytes sent on data connections.")),
      received_(families.Counter(metric::kRpcReceivedBytes,
                                 "Bytes received on data connections.")),
      references_(families.Gauges(
          metric::kRpcReferences,
          "Remote references: owned here, used here, waiting for the owner.")),
      owned_(references_.Add({{"state", "owned"}})),
      used_(references_.Add({{"state", "used"}})),
      pending_(references_.Add({{"state", "pending"}})),
      threads_(families.Gauge(metric::kRpcPoolThreads,
                              "Threads that read and run remote calls.")),
      idle_threads_(families.Gauge(metric::kRpcPoolIdleThreads,
                                   "Threads of the pool that wait.")) {
  const absl::MutexLock lock(&mu_);
  other_ = MakeCalls({"other", "other"});
}

void RpcMetrics::CallDone(std::string_view method, std::string_view peer_role,
                          std::string_view code, absl::Duration duration) {
  Calls calls;
  {
    const absl::MutexLock lock(&mu_);
    calls = Find(method, peer_role);
  }
  calls.duration->Observe(absl::ToDoubleSeconds(duration));
  calls.by_code.at(CodeIndex(code))->Increment();
}

void RpcMetrics::SetFigures(const RpcFigures& figures) {
  in_flight_.Set(static_cast<double>(figures.calls_in_flight));
  active_.Set(static_cast<double>(figures.server_calls_active));
  owned_.Set(static_cast<double>(figures.references_owned));
  used_.Set(static_cast<double>(figures.references_used));
  pending_.Set(static_cast<double>(figures.references_pending));
  threads_.Set(static_cast<double>(figures.pool_threads));
  idle_threads_.Set(static_cast<double>(figures.pool_idle_threads));
  const absl::MutexLock lock(&mu_);
  Raise(sent_, figures.sent_bytes, sent_bytes_);
  Raise(received_, figures.received_bytes, received_bytes_);
}

size_t RpcMetrics::CodeIndex(std::string_view code) {
  const auto found = std::find(kCodes.begin(), kCodes.end(), code);
  return found == kCodes.end() ? 1  // "error"
                               : static_cast<size_t>(found - kCodes.begin());
}

RpcMetrics::Calls RpcMetrics::MakeCalls(const Key& key) {
  prometheus::Labels labels = {{"method", key.first},
                               {"peer_role", key.second}};
  Calls calls;
  calls.duration = &durations_.Add(labels, kSeconds);
  for (size_t i = 0; i < kCodes.size(); ++i) {
    labels["code"] = kCodes.at(i);
    calls.by_code.at(i) = &calls_.Add(labels);
  }
  return calls;
}

const RpcMetrics::Calls& RpcMetrics::Find(std::string_view method,
                                          std::string_view peer_role) {
  Key key(LabelValue(method), LabelValue(peer_role));
  const auto found = pairs_.find(key);
  if (found != pairs_.end()) return found->second;
  if (pairs_.size() >= kMaxPairs || key == Key("other", "other")) return other_;
  const Calls calls = MakeCalls(key);
  return pairs_.emplace(std::move(key), calls).first->second;
}

}  // namespace disttrain
