// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "controller/api/pod_view.h"

namespace disttrain {

// One rank's end that was not a success.
struct PodFailure {
  std::string pod;
  std::string pod_uid;
  std::string node;
  std::string role;
  int index = 0;
  int rank = 0;
  std::optional<int> exit_code;
  std::string signal;  // "KILL"; "": none
  // "OOMKilled", "Evicted", "Deleted", "Error", "PeerLost", ...
  std::string reason;
  // One line for a person: the worker's own cause, else what is known.
  std::string message;
  // Infrastructure took the pod; its program did nothing wrong.
  bool disruption = false;
  // Its container cannot be made from the template: restarting does not help.
  bool config_error = false;
  // It left because another rank failed or because it was told to: exit code 75
  // or a termination message that names another rank.
  bool victim = false;
  std::optional<int> failed_rank;  // whom the victim lost
  // By the worker's clock, else when the container ended, else observation.
  absl::Time time;
  absl::Time created;  // the pod; InfinitePast: not known
};

// Why `pod` of the current attempt counts as failed; nullopt if it does not.
// A pod that succeeded never does. `config_error_since`: since when its
// container could not be made (2 minutes make it a failure).
std::optional<PodFailure> FailureOf(
    const PodView& pod, std::optional<absl::Time> config_error_since,
    absl::Time now);

// True if the main container is done, well, whatever its sidecars do.
bool Succeeded(const PodView& pod);
// True if nothing of the pod runs any more.
bool Finished(const PodView& pod);

// A rank whose pod was there and is gone without having succeeded.
PodFailure MissingPod(const std::string& role, int index, int rank,
                      const std::string& pod, absl::Time now);

// Waiting reasons that only a change of the template can heal.
bool IsConfigError(const PodView& pod);

// Index of the failure that the others follow from: not a victim; the rank that
// rank 0 named first (`hint`), else the earliest. nullopt if all are victims.
std::optional<size_t> RootCause(const std::vector<PodFailure>& failures,
                                std::optional<int> hint);

// "rank 2 (observer): killed by SIGKILL".
std::string Describe(const PodFailure& failure);

}  // namespace disttrain
