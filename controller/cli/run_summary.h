// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "controller/api/job.h"

// What is said at the end of a run, from the job's status. Pure.
namespace disttrain {

// How a job ended: its condition Complete or Failed that is True.
struct JobOutcome {
  bool complete = false;
  std::string reason;
  std::string message;
};

// Absent while the job goes on.
std::optional<JobOutcome> OutcomeOf(const Json& status);

// "cartpole: Complete – AllRanksSucceeded in 41 s, 1 attempt; reward 476.2 at
// step 312".
std::string SummaryLine(const std::string& job, const Json& status,
                        const JobOutcome& outcome, absl::Duration elapsed);

// "root cause: rank 2 (observer, pod cartpole-observer-1): killed by SIGKILL:
// <message>": the entry of status.failures that is marked so, of the last
// attempt; without one, the condition's message.
std::string RootCauseLine(const Json& status, const JobOutcome& outcome);

// The pod that RootCauseLine names; "": none.
std::string RootCausePod(const Json& status);

}  // namespace disttrain
