// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pod_view.h"

#include <array>
#include <charconv>

#include "fmt/format.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

constexpr char kMainContainerAnnotation[] =
    "kubectl.kubernetes.io/default-container";

// Looking into objects of unknown shape: what is not there is null.
const Json& Child(const Json& object, const std::string& key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string Text(const Json& object, const std::string& key) {
  const Json& value = Child(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<int> Integer(const Json& object, const std::string& key) {
  const Json& value = Child(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<int64_t>();
  if (number < std::numeric_limits<int>::min() ||
      number > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(number);
}

int NumberLabel(const Json& labels, const std::string& key, int fallback) {
  const std::string text = Text(labels, key);
  int number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  const bool valid =
      result.ec == std::errc() && result.ptr == end && number >= 0;
  return valid ? number : fallback;
}

std::optional<absl::Time> Time(const Json& object, const std::string& key) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, Text(object, key), &time, &error)) {
    return std::nullopt;
  }
  return time;
}

PodPhase PhaseOf(const std::string& phase) {
  if (phase.empty() || phase == "Pending") return PodPhase::kPending;
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

// The element of `list` that has `key` = `value`; null if there is none.
const Json& Named(const Json& list, const std::string& key,
                  const std::string& value) {
  static const Json kNull;
  if (!list.is_array()) return kNull;
  for (const Json& element : list) {
    if (Text(element, key) == value) return element;
  }
  return kNull;
}

std::string MainContainerName(const Json& pod) {
  std::string annotated = Text(Child(Child(pod, "metadata"), "annotations"),
                               kMainContainerAnnotation);
  if (!annotated.empty()) return annotated;
  const Json& containers = Child(Child(pod, "spec"), "containers");
  if (!containers.is_array() || containers.empty()) return "";
  return Text(containers[0], "name");
}

void ReadMetadata(const Json& metadata, PodView& view) {
  view.name = Text(metadata, "name");
  view.uid = Text(metadata, "uid");
  view.resource_version = Text(metadata, "resourceVersion");
  view.creation_time = Time(metadata, "creationTimestamp");
  view.deletion_time = Time(metadata, "deletionTimestamp");
  view.being_deleted = !Child(metadata, "deletionTimestamp").is_null();
  const Json& labels = Child(metadata, "labels");
  view.job_name = Text(labels, label::kJobName);
  view.role = Text(labels, label::kRole);
  view.role_index = NumberLabel(labels, label::kReplicaIndex, -1);
  view.rank = NumberLabel(labels, label::kRank, -1);
  view.attempt = NumberLabel(labels, label::kAttempt, -1);
  view.incarnation = NumberLabel(labels, label::kIncarnation, 0);
  const Json& owners = Child(metadata, "ownerReferences");
  if (!owners.is_array()) return;
  for (const Json& owner : owners) {
    if (Child(owner, "controller") == true) view.owner_uid = Text(owner, "uid");
  }
}

void ReadConditions(const Json& conditions, PodView& view) {
  view.ready = Text(Named(conditions, "type", "Ready"), "status") == "True";
  const Json& disrupted = Named(conditions, "type", "DisruptionTarget");
  view.disruption_target = Text(disrupted, "status") == "True";
  if (view.disruption_target)
    view.disruption_reason = Text(disrupted, "reason");
  const Json& scheduled = Named(conditions, "type", "PodScheduled");
  if (Text(scheduled, "status") == "False") {
    const std::string message = Text(scheduled, "message");
    view.unschedulable_reason =
        message.empty() ? Text(scheduled, "reason") : message;
  }
}

void ReadTermination(const Json& terminated, PodView& view) {
  view.exit_code = Integer(terminated, "exitCode");
  view.signal = Integer(terminated, "signal");
  if (view.signal == 0) view.signal.reset();
  if (!view.signal && view.exit_code && *view.exit_code > 128 &&
      *view.exit_code <= 192) {
    view.signal = *view.exit_code - 128;
  }
  view.termination_message = Text(terminated, "message");
  view.finished_at = Time(terminated, "finishedAt");
}

void ReadMainContainer(const Json& state, PodView& view) {
  const Json& terminated = Child(state, "terminated");
  view.main_running = Child(state, "running").is_object();
  view.main_started = view.main_running || terminated.is_object();
  if (terminated.is_object()) ReadTermination(terminated, view);
  if (!view.reason.empty()) return;
  view.reason = Text(terminated, "reason");
  const Json& waiting = Child(state, "waiting");
  if (!waiting.is_object()) return;
  view.reason = Text(waiting, "reason");
  if (view.message.empty()) view.message = Text(waiting, "message");
}

}  // namespace

PodView PodViewFromJson(const Json& pod) {
  PodView view;
  ReadMetadata(Child(pod, "metadata"), view);
  view.node = Text(Child(pod, "spec"), "nodeName");
  view.bound = !view.node.empty();
  const Json& status = Child(pod, "status");
  view.phase = PhaseOf(Text(status, "phase"));
  view.pod_ip = Text(status, "podIP");
  view.reason = Text(status, "reason");
  view.message = Text(status, "message");
  ReadConditions(Child(status, "conditions"), view);
  const Json& container =
      Named(Child(status, "containerStatuses"), "name", MainContainerName(pod));
  ReadMainContainer(Child(container, "state"), view);
  return view;
}

std::string SignalName(int signal) {
  static constexpr std::array<const char*, 32> kNames = {
      nullptr,  "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
      "FPE",    "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
      "STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
      "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "IO",   "PWR",  "SYS"};
  if (signal > 0 && static_cast<size_t>(signal) < kNames.size()) {
    return kNames[static_cast<size_t>(signal)];
  }
  return fmt::format("{}", signal);
}

}  // namespace disttrain
