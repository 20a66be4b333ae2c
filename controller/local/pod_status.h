// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "controller/api/job.h"

// The status that a kubelet writes to a pod. Pure.
namespace disttrain {

// How a pod's process ended.
struct Termination {
  int exit_code = 0;
  int signal = 0;           // 0: it exited by itself
  std::string reason = {};  // Completed, Error, StartError, UnsupportedLocally
  std::string message = {};
  absl::Time started = absl::InfinitePast();
  absl::Time finished = absl::InfinitePast();
};

// `pod` with phase Running, its container running and ready since `started`.
Json WithRunning(Json pod, absl::Time started);

// `pod` with phase Succeeded (exit code 0) or Failed.
Json WithTermination(Json pod, const Termination& termination);

}  // namespace disttrain
