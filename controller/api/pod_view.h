// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "controller/api/job.h"

namespace disttrain {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// What decisions need to know of a pod: an extract of its JSON. The container
// looked at is the main one: the annotation
// kubectl.kubernetes.io/default-container names it, else it is the first.
struct PodView {
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string job_name;   // label
  std::string owner_uid;  // the controlling owner's; "": none
  std::string role;
  int role_index = -1;  // -1: the label is missing or malformed; so below
  int rank = -1;
  int attempt = -1;
  int incarnation = 0;

  PodPhase phase = PodPhase::kPending;
  // Scheduled to a node (spec.nodeName), and the node's name.
  bool bound = false;
  std::string node;
  std::string pod_ip;
  bool ready = false;         // condition Ready
  bool main_running = false;  // the main container runs
  bool main_started = false;  // it runs or has ended
  bool being_deleted = false;
  std::optional<absl::Time> deletion_time;
  std::optional<absl::Time> creation_time;

  // status.reason ("Evicted", "NodeLost"…), else the main container's reason
  // for waiting ("ImagePullBackOff") or ending ("OOMKilled", "Error").
  std::string reason;
  std::string message;
  bool disruption_target = false;  // condition DisruptionTarget=True
  std::string disruption_reason;   // its reason
  // Why it has no node yet: condition PodScheduled=False; "": it has, or
  // nobody said so.
  std::string unschedulable_reason;

  // Once the main container has ended.
  std::optional<int> exit_code;
  std::optional<int> signal;  // also from exit codes 129..192
  std::string termination_message;
  std::optional<absl::Time> finished_at;
};

// Never fails: what is missing or of a wrong type keeps its default, since pods
// come from other people's programs too.
PodView PodViewFromJson(const Json& pod);

// "KILL" for 9; the number itself for those without a name.
std::string SignalName(int signal);

}  // namespace disttrain
