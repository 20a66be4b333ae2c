// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "controller/api/job.h"
#include "controller/reconcile/job_status.h"

// spec.deadlines as points in time. Pure. nullopt: off, or its clock does not
// run now.
namespace disttrain {

// From the first pod of the attempt until Running.
std::optional<absl::Time> PendingDue(const JobSpec& spec,
                                     const JobStatus& status);

// When the time in Running, summed over attempts, is used up.
std::optional<absl::Time> ActiveDue(const JobSpec& spec,
                                    const JobStatus& status, absl::Time now);

// When the attempt has gone too long without a step.
std::optional<absl::Time> ProgressDue(const JobSpec& spec,
                                      const JobStatus& status);

}  // namespace disttrain
