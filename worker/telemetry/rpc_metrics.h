// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/telemetry/families.h"
#include "worker/telemetry/metrics.h"

namespace disttrain {

// The disttrain_rpc_* part of Metrics.
//
// Threads: thread-safe.
class RpcMetrics {
 public:
  explicit RpcMetrics(const Families& families);

  void CallDone(std::string_view method, std::string_view peer_role,
                std::string_view code, absl::Duration duration);
  void SetFigures(const RpcFigures& figures);

 private:
  static constexpr std::array<const char*, 5> kCodes = {
      "ok", "error", "deadline", "peer_lost", "cancelled"};
  // Method and peer role.
  using Key = std::pair<std::string, std::string>;
  struct Calls {
    prometheus::Histogram* duration = nullptr;
    std::array<prometheus::Counter*, kCodes.size()> by_code{};
  };

  static size_t CodeIndex(std::string_view code);
  Calls MakeCalls(const Key& key);
  const Calls& Find(std::string_view method, std::string_view peer_role)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Gauge& in_flight_;
  prometheus::Gauge& active_;
  prometheus::Counter& sent_;
  prometheus::Counter& received_;
  prometheus::Family<prometheus::Gauge>& references_;
  prometheus::Gauge& owned_;
  prometheus::Gauge& used_;
  prometheus::Gauge& pending_;
  prometheus::Gauge& threads_;
  prometheus::Gauge& idle_threads_;

  absl::Mutex mu_;
  // Grows to kMaxPairs; entries stay.
  std::map<Key, Calls, std::less<>> pairs_ ABSL_GUARDED_BY(mu_);
  Calls other_ ABSL_GUARDED_BY(mu_);
  uint64_t sent_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t received_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace disttrain
