// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace disttrain {

struct MetricsOptions {
  std::string job_name =
      "";  // "namespace/name" or "name": the label is the name
  std::string role = "";
  int rank = 0;
  int world_size = 1;
  // For disttrain_worker_info; "" becomes "none".
  std::string device = "cpu";
  std::string torch_version = "";
  std::string nccl_version = "";
};

// What the RPC layer holds at one moment. Totals never fall.
struct RpcFigures {
  int64_t calls_in_flight = 0;      // by this process, not answered yet
  int64_t server_calls_active = 0;  // methods that run here
  uint64_t sent_bytes = 0;          // total
  uint64_t received_bytes = 0;      // total
  int64_t references_owned = 0;
  int64_t references_used = 0;
  int64_t references_pending = 0;
  int64_t pool_threads = 0;
  int64_t pool_idle_threads = 0;
};

// All metrics of a worker process (names and labels:
// proto/contract/metric_names.h), and their text for /metrics.
//
// At most 200 series: of the RPC series only the first 8 pairs of method and
// peer role get their own, later ones count under method and peer role "other".
// Counters and histograms are there, at 0, from the start; a gauge of training
// appears with its first value, so that a rank without a loss shows none.
//
// Threads: thread-safe. Recording takes no lock of ours but RpcCallDone's, and
// is cheap enough for every step; not for every sample.
class Metrics {
 public:
  // Of Serialize().
  static constexpr char kContentType[] =
      "text/plain; version=0.0.4; charset=utf-8";

  explicit Metrics(const MetricsOptions& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // One training step (iteration, episode) of `duration`.
  void StepDone(absl::Duration duration);
  void AddSamples(int64_t count);
  void EpochDone();
  // NaN and infinities are shown as they are and counted as nonfinite.
  void SetLoss(double loss);
  void SetGradientNorm(double norm);
  void SetLearningRate(double rate);

  // One episode; `length` in environment steps, which are counted too.
  void EpisodeDone(double reward, int64_t length);
  // The running (smoothed) reward.
  void SetRewardMean(double reward);

  // Rank 0 answered a heartbeat.
  void HeartbeatDone(absl::Time time);

  // A call of this process to a peer has ended. `code`: ok, error, deadline,
  // peer_lost or cancelled; anything else counts as error.
  void RpcCallDone(std::string_view method, std::string_view peer_role,
                   std::string_view code, absl::Duration duration);
  void SetRpcFigures(const RpcFigures& figures);

  // The exposition text (format 0.0.4), with process_* read now.
  std::string Serialize() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace disttrain
