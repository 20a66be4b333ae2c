// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/success_policy.h"

#include "fmt/format.h"

namespace disttrain {
namespace {

int SucceededRanks(const JobStatus& status) {
  size_t ranks = 0;
  for (const RoleStatus& role : status.roles) {
    ranks += role.succeeded_ranks.size();
  }
  return static_cast<int>(ranks);
}

// The ranks of a program with restart: Rank serve the others: when these are
// done, one that is away has nothing to come back to.
int RanksToWaitFor(const JobSpec& spec, const JobStatus& status) {
  int ranks = WorldSize(spec);
  if (spec.program.empty()) return ranks;
  for (size_t i = 0; i < status.roles.size(); ++i) {
    const Role& role = spec.roles[i];
    if (role.restart != RestartScope::kRank) continue;
    ranks -= role.replicas * ProcessesPerPod(role, spec.main_container) -
             static_cast<int>(status.roles[i].succeeded_ranks.size());
  }
  return ranks;
}

std::optional<Success> CheckRanks(const JobSpec& spec,
                                  const JobStatus& status) {
  const int done = SucceededRanks(status);
  switch (spec.success_policy.mode) {
    case SuccessMode::kAllRanks:
      if (done > 0 && done >= RanksToWaitFor(spec, status)) {
        return Success{"AllRanksSucceeded",
                       fmt::format("all {} ranks are done", done)};
      }
      return std::nullopt;
    case SuccessMode::kRank0:
      if (!status.roles.empty() &&
          status.roles.front().succeeded_ranks.count(0) > 0) {
        return Success{"Rank0Succeeded", "rank 0 is done"};
      }
      return std::nullopt;
    case SuccessMode::kAnyRank:
      for (const RoleStatus& role : status.roles) {
        if (role.succeeded_ranks.empty()) continue;
        return Success{"AnyRankSucceeded",
                       fmt::format("rank {} ({}) is done",
                                   *role.succeeded_ranks.begin(), role.name)};
      }
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> MetricValue(const Training& training,
                                  const std::string& name) {
  if (name == "reward") return training.reward;
  if (name == "episodeReward") return training.episode_reward;
  if (name == "loss") return training.loss;
  if (name == "step" && training.step) {
    return static_cast<double>(*training.step);
  }
  return std::nullopt;
}

bool MeetsTarget(const MetricTarget& target, const Training& training) {
  const auto value = MetricValue(training, target.name);
  if (!value) return false;
  return target.op == "LessOrEqual" ? *value <= target.threshold
                                    : *value >= target.threshold;
}

std::optional<Success> CheckSuccess(const JobSpec& spec,
                                    const JobStatus& status) {
  if (auto success = CheckRanks(spec, status)) return success;
  const auto& metric = spec.success_policy.metric;
  if (metric && status.training.target_reports >=
                    std::max(metric->consecutive_reports, 1)) {
    return Success{
        "TargetMetricReached",
        fmt::format("{} {:.6g} reached the target {:.6g}", metric->name,
                    MetricValue(status.training, metric->name).value_or(0),
                    metric->threshold),
        /*stop_training=*/true};
  }
  return std::nullopt;
}

}  // namespace disttrain
