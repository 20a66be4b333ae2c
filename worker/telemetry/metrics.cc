// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/metrics.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "prometheus/text_serializer.h"
#include "proto/contract/metric_names.h"
#include "worker/telemetry/families.h"
#include "worker/telemetry/process_collector.h"
#include "worker/telemetry/rpc_metrics.h"

namespace disttrain {
namespace {

using Boundaries = prometheus::Histogram::BucketBoundaries;

// From a step of a small model to one of minutes.
const Boundaries kStepSeconds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                 0.5,   1,     2.5,  10,   60,  300};
// Gym's tasks: -200 (Acrobot) to 500 (CartPole-v1; solved at 475).
const Boundaries kRewards = {-200, -100, 0,   10,  50, 100,
                             200,  300,  400, 475, 500};

std::string Label(const std::string& text) {
  return text.empty() ? "none" : LabelValue(text);
}

// The namespace is a label of the scrape's target.
std::string JobLabel(const std::string& job) {
  const size_t slash = job.find('/');
  return Label(slash == std::string::npos ? job : job.substr(slash + 1));
}

prometheus::Labels CommonLabels(const MetricsOptions& options) {
  return {{"job_name", JobLabel(options.job_name)},
          {"role", Label(options.role)},
          {"rank", std::to_string(options.rank)}};
}

double Seconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

}  // namespace

struct Metrics::State {
  explicit State(const MetricsOptions& options);

  // Members are initialised in this order; all below use the registry.
  prometheus::Registry registry;
  ProcessCollector process;
  Families families;

  prometheus::Counter& steps;
  prometheus::Counter& samples;
  prometheus::Counter& epochs;
  prometheus::Histogram& step_duration;
  prometheus::Family<prometheus::Counter>& nonfinite;
  prometheus::Counter& nonfinite_losses;
  prometheus::Counter& nonfinite_gradients;
  prometheus::Histogram& episode_reward;
  prometheus::Counter& episodes;
  prometheus::Counter& environment_steps;
  LateGauge heartbeat;
  LateGauge loss;
  LateGauge gradient_norm;
  LateGauge learning_rate;
  LateGauge episode_reward_mean;
  LateGauge episode_length;
  RpcMetrics rpc;
};

Metrics::State::State(const MetricsOptions& options)
    : families{registry, CommonLabels(options)},
      steps(families.Counter(metric::kTrainSteps, "Training steps finished.")),
      samples(families.Counter(metric::kTrainSamples,
                               "Samples that training has consumed.")),
      epochs(families.Counter(metric::kTrainEpochs,
                              "Passes over the training data finished.")),
      step_duration(families
                        .Histograms(metric::kTrainStepDuration,
                                    "Duration of a training step in seconds.")
                        .Add({}, kStepSeconds)),
      nonfinite(families.Counters(metric::kTrainNonfinite,
                                  "Values that were NaN or infinite.")),
      nonfinite_losses(nonfinite.Add({{"kind", "loss"}})),
      nonfinite_gradients(nonfinite.Add({{"kind", "grad"}})),
      episode_reward(families
                         .Histograms(metric::kEpisodeReward,
                                     "Rewards of finished episodes.")
                         .Add({}, kRewards)),
      episodes(families.Counter(metric::kEpisodes, "Episodes finished.")),
      environment_steps(
          families.Counter(metric::kEnvironmentSteps,
                           "Environment steps in finished episodes.")),
      heartbeat(families, metric::kWorkerHeartbeatTimestamp,
                "Last heartbeat that rank 0 answered, in seconds since the "
                "epoch."),
      loss(families, metric::kTrainLoss, "Loss of the last step."),
      gradient_norm(families, metric::kTrainGradientNorm,
                    "Norm of the last step's gradient."),
      learning_rate(families, metric::kTrainLearningRate,
                    "Learning rate in force."),
      episode_reward_mean(families, metric::kEpisodeRewardMean,
                          "Running mean of the episodes' rewards."),
      episode_length(families, metric::kEpisodeLength,
                     "Environment steps of the last episode."),
      rpc(families) {
  families.Gauges(metric::kWorkerInfo, "What this worker is; always 1.")
      .Add({{"world_size", std::to_string(options.world_size)},
            {"device", Label(options.device)},
            {"torch_version", Label(options.torch_version)},
            {"nccl_version", Label(options.nccl_version)}},
           1);
  families
      .Gauge(metric::kWorkerUpTimestamp,
             "Start of this worker in seconds since the epoch.")
      .Set(Seconds(absl::Now()));
}

Metrics::Metrics(const MetricsOptions& options)
    : state_(std::make_unique<State>(options)) {}

Metrics::~Metrics() = default;

void Metrics::StepDone(absl::Duration duration) {
  state_->steps.Increment();
  state_->step_duration.Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::AddSamples(int64_t count) {
  state_->samples.Increment(static_cast<double>(count));
}

void Metrics::EpochDone() { state_->epochs.Increment(); }

void Metrics::SetLoss(double loss) {
  if (!std::isfinite(loss)) state_->nonfinite_losses.Increment();
  state_->loss.Set(loss);
}

void Metrics::SetGradientNorm(double norm) {
  if (!std::isfinite(norm)) state_->nonfinite_gradients.Increment();
  state_->gradient_norm.Set(norm);
}

void Metrics::SetLearningRate(double rate) { state_->learning_rate.Set(rate); }

void Metrics::EpisodeDone(double reward, int64_t length) {
  state_->episodes.Increment();
  // One NaN would stay in the histogram's sum for good.
  if (std::isfinite(reward)) state_->episode_reward.Observe(reward);
  state_->episode_length.Set(static_cast<double>(length));
  state_->environment_steps.Increment(static_cast<double>(length));
}

void Metrics::SetRewardMean(double reward) {
  state_->episode_reward_mean.Set(reward);
}

void Metrics::HeartbeatDone(absl::Time time) {
  state_->heartbeat.Set(Seconds(time));
}

void Metrics::RpcCallDone(std::string_view method, std::string_view peer_role,
                          std::string_view code, absl::Duration duration) {
  state_->rpc.CallDone(method, peer_role, code, duration);
}

void Metrics::SetRpcFigures(const RpcFigures& figures) {
  state_->rpc.SetFigures(figures);
}

std::string Metrics::Serialize() const {
  std::vector<prometheus::MetricFamily> families = state_->registry.Collect();
  for (prometheus::MetricFamily& family : state_->process.Collect()) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace disttrain
