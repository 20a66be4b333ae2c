// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "controller/api/job.h"
#include "controller/reconcile/job_status.h"

namespace disttrain {

struct Success {
  std::string reason;  // AllRanksSucceeded | Rank0Succeeded | ...
  std::string message;
  // The ranks still train and are to be told that they are done.
  bool stop_training = false;
};

// Whether what `status` has recorded satisfies spec.successPolicy. Pure.
std::optional<Success> CheckSuccess(const JobSpec& spec,
                                    const JobStatus& status);

// The figure that successPolicy.metric.name means: reward, episodeReward, loss,
// step. nullopt: it was not reported, or there is no such figure.
std::optional<double> MetricValue(const Training& training,
                                  const std::string& name);

// True if the figure is there and on the right side of the threshold.
bool MeetsTarget(const MetricTarget& target, const Training& training);

}  // namespace disttrain
