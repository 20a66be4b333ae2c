// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "controller/api/job.h"

// One line about how far a job is. Pure.
namespace disttrain {

struct JobProgress {
  std::string job = {};
  std::string phase = {};    // status.phase; "Pending" before there is one
  std::string message = {};  // status.message
  int attempt = 0;
  std::optional<int64_t> step = {};
  std::optional<int64_t> total_steps = {};
  std::string reward = {};  // as status.training has them; "": not reported
  std::string loss = {};
  std::string steps_per_second = {};
  std::optional<int64_t> eta_seconds = {};

  bool operator==(const JobProgress&) const = default;
};

// From a DistTrainingJob object.
JobProgress ProgressOf(const Json& job);

// "cartpole Running [=====>    ] 312/1500  reward 212.4  6.1 steps/s  0:41
// ETA 2:10" in at most `width` columns: the bar takes what is left, and what
// does not fit is left out from the right.
std::string ProgressLine(const JobProgress& progress, absl::Duration elapsed,
                         int width);

// The same without a bar, for a file or a pipe.
std::string PlainProgress(const JobProgress& progress, absl::Duration elapsed);

// "0:41", "12:05", "3:07:00".
std::string ClockText(absl::Duration duration);

}  // namespace disttrain
