// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "controller/api/job.h"

namespace disttrain {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// How a container ended.
struct ContainerExit {
  int exit_code = 0;
  int signal = 0;       // 0: not by a signal, or the runtime did not say
  std::string reason;   // "OOMKilled", "Error", ...
  std::string message;  // the termination message
  std::optional<absl::Time> started_at;
  std::optional<absl::Time> finished_at;
};

// What the reconcile code keeps of a pod: a few hundred bytes instead of the
// object. "" and nullopt: absent.
struct PodView {
  std::string name;
  std::string namespace_;
  std::string uid;
  std::string resource_version;
  // Of the owner reference with controller: true.
  std::string owner_uid;

  // From our labels; -1 if absent or no number.
  std::string role;
  int index = -1;
  int rank = -1;
  int attempt = -1;
  int incarnation = 0;

  PodPhase phase = PodPhase::kPending;
  std::string reason;      // status.reason: "Evicted", "NodeShutdown", ...
  std::string message;     // status.message
  std::string node;        // spec.nodeName
  bool scheduled = false;  // condition PodScheduled is True, or node is set
  std::string unschedulable_message;  // of PodScheduled=False
  bool ready = false;                 // condition Ready is True
  std::string disruption_reason;      // of condition DisruptionTarget=True
  std::string disruption_message;
  std::optional<absl::Time> created_at;
  std::optional<absl::Time> started_at;  // status.startTime
  // When the pod must be gone (the grace is already in it).
  std::optional<absl::Time> deletion_time;
  std::optional<int> deletion_grace_seconds;

  // The main container: named by the annotation
  // kubectl.kubernetes.io/default-container, else the first one.
  std::string main_container;
  bool main_running = false;
  std::string waiting_reason;  // "ImagePullBackOff", "InvalidImageName", ...
  std::string waiting_message;
  std::optional<ContainerExit> exit;
};

// Reads what it finds: a field of another type counts as absent, so that an odd
// object cannot stop the controller.
PodView PodViewFromJson(const Json& pod);

}  // namespace disttrain
