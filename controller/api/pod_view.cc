// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pod_view.h"

#include <charconv>
#include <limits>
#include <string_view>

#include "proto/contract/labels.h"

namespace disttrain {
namespace {

const Json kNull;

const Json& At(const Json& object, const char* key) {
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string Text(const Json& object, const char* key) {
  const Json& value = At(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<int> Integer(const Json& object, const char* key) {
  const Json& value = At(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<int64_t>();
  if (number < std::numeric_limits<int>::min() ||
      number > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(number);
}

std::optional<absl::Time> TimeAt(const Json& object, const char* key) {
  absl::Time time;
  std::string error;
  const std::string text = Text(object, key);
  if (text.empty() ||
      !absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return std::nullopt;
  }
  return time;
}

int LabelNumber(const Json& labels, const char* key, int absent) {
  const std::string text = Text(labels, key);
  int number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end && number >= 0 ? number
                                                                      : absent;
}

void ReadMetadata(const Json& metadata, PodView& view) {
  view.name = Text(metadata, "name");
  view.namespace_ = Text(metadata, "namespace");
  view.uid = Text(metadata, "uid");
  view.resource_version = Text(metadata, "resourceVersion");
  view.created_at = TimeAt(metadata, "creationTimestamp");
  view.deletion_time = TimeAt(metadata, "deletionTimestamp");
  view.deletion_grace_seconds = Integer(metadata, "deletionGracePeriodSeconds");
  for (const Json& owner : At(metadata, "ownerReferences")) {
    const Json& controller = At(owner, "controller");
    if (controller.is_boolean() && controller.get<bool>()) {
      view.owner_uid = Text(owner, "uid");
    }
  }
  const Json& labels = At(metadata, "labels");
  view.role = Text(labels, label::kRole);
  view.index = LabelNumber(labels, label::kReplicaIndex, -1);
  view.rank = LabelNumber(labels, label::kRank, -1);
  view.attempt = LabelNumber(labels, label::kAttempt, -1);
  view.incarnation = LabelNumber(labels, label::kIncarnation, 0);
}

PodPhase PhaseFrom(const std::string& phase) {
  if (phase.empty() || phase == "Pending") return PodPhase::kPending;
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

void ReadConditions(const Json& conditions, PodView& view) {
  for (const Json& condition : conditions) {
    const std::string type = Text(condition, "type");
    const bool is_true = Text(condition, "status") == "True";
    if (type == "PodScheduled") {
      view.scheduled = view.scheduled || is_true;
      if (!is_true) view.unschedulable_message = Text(condition, "message");
    } else if (type == "Ready") {
      view.ready = is_true;
    } else if (type == "DisruptionTarget" && is_true) {
      view.disruption_reason = Text(condition, "reason");
      view.disruption_message = Text(condition, "message");
      if (view.disruption_reason.empty()) view.disruption_reason = "Disrupted";
    }
  }
}

std::string MainContainer(const Json& pod) {
  const std::string named = Text(At(At(pod, "metadata"), "annotations"),
                                 "kubectl.kubernetes.io/default-container");
  if (!named.empty()) return named;
  const Json& containers = At(At(pod, "spec"), "containers");
  return containers.is_array() && !containers.empty()
             ? Text(containers.front(), "name")
             : std::string();
}

void ReadContainer(const Json& statuses, PodView& view) {
  for (const Json& status : statuses) {
    if (Text(status, "name") != view.main_container) continue;
    const Json& state = At(status, "state");
    view.main_running = At(state, "running").is_object();
    view.waiting_reason = Text(At(state, "waiting"), "reason");
    view.waiting_message = Text(At(state, "waiting"), "message");
    const Json& ended = At(state, "terminated");
    const std::optional<int> code = Integer(ended, "exitCode");
    if (!code) continue;
    view.exit = ContainerExit{*code,
                              Integer(ended, "signal").value_or(0),
                              Text(ended, "reason"),
                              Text(ended, "message"),
                              TimeAt(ended, "startedAt"),
                              TimeAt(ended, "finishedAt")};
  }
}

}  // namespace

PodView PodViewFromJson(const Json& pod) {
  PodView view;
  ReadMetadata(At(pod, "metadata"), view);
  view.node = Text(At(pod, "spec"), "nodeName");
  view.scheduled = !view.node.empty();
  view.main_container = MainContainer(pod);
  const Json& status = At(pod, "status");
  view.phase = PhaseFrom(Text(status, "phase"));
  view.reason = Text(status, "reason");
  view.message = Text(status, "message");
  view.started_at = TimeAt(status, "startTime");
  ReadConditions(At(status, "conditions"), view);
  ReadContainer(At(status, "containerStatuses"), view);
  return view;
}

}  // namespace disttrain
