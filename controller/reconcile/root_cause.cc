// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/root_cause.h"

#include <algorithm>
#include <array>

#include "controller/reconcile/job_status.h"
#include "fmt/format.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/termination_message.h"

namespace disttrain {
namespace {

constexpr absl::Duration kConfigErrorGrace = absl::Minutes(2);
constexpr size_t kMaxMessage = 1024;

// Reasons in a pod's status by which nodes and schedulers take a pod.
bool IsDisruptionReason(const std::string& reason) {
  static constexpr std::array kReasons = {
      "Evicted",      "Preempting", "Preempted",  "NodeLost",
      "NodeShutdown", "Shutdown",   "Terminated", "UnexpectedAdmissionError",
      "NodeAffinity"};
  return std::find(kReasons.begin(), kReasons.end(), reason) !=
             kReasons.end() ||
         reason.rfind("OutOf", 0) == 0;
}

// Words of the DisruptionTarget condition, as the reasons a person knows.
std::string DisruptionReason(const PodView& pod) {
  if (IsDisruptionReason(pod.reason)) return pod.reason;
  const std::string& reason = pod.disruption_reason;
  if (reason == "PreemptionByScheduler") return "Preempted";
  if (reason == "EvictionByEvictionAPI") return "Evicted";
  if (reason == "DeletionByTaintManager" || reason == "DeletionByPodGC") {
    return "NodeLost";
  }
  return reason.empty() ? "Disrupted" : reason;
}

std::string FirstLine(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return Shorten(text.substr(begin, text.find_first_of("\r\n", begin) - begin),
                 kMaxMessage);
}

std::string ExitMessage(const PodView& pod) {
  std::string said = FirstLine(pod.termination_message);
  if (!said.empty()) return said;
  if (pod.signal) {
    return fmt::format("killed by SIG{}{}", SignalName(*pod.signal),
                       pod.reason == "OOMKilled" ? ": out of memory" : "");
  }
  if (pod.reason == "OOMKilled") return "out of memory";
  if (!pod.message.empty()) return FirstLine(pod.message);
  if (pod.exit_code) return fmt::format("exit code {}", *pod.exit_code);
  return "the pod failed without saying why";
}

void ReadExit(const PodView& pod, PodFailure& failure) {
  failure.exit_code = pod.exit_code;
  if (pod.signal) failure.signal = SignalName(*pod.signal);
  if (pod.finished_at) failure.time = *pod.finished_at;
  failure.victim = pod.exit_code == static_cast<int>(ExitCode::kPeerLost);
  const auto said = ParseTerminationMessage(pod.termination_message);
  if (!said) {
    failure.message = ExitMessage(pod);
    return;
  }
  failure.message = FirstLine(said->cause);
  if (said->time_ms > 0) failure.time = absl::FromUnixMillis(said->time_ms);
  // Of several processes in a pod the one that failed first tells.
  if (said->rank > failure.rank) failure.rank = said->rank;
  if (said->failed_rank && *said->failed_rank != said->rank) {
    failure.failed_rank = said->failed_rank;
    failure.victim = true;
  }
}

PodFailure Basics(const PodView& pod, absl::Time now) {
  PodFailure failure;
  failure.pod = pod.name;
  failure.pod_uid = pod.uid;
  failure.node = pod.node;
  failure.role = pod.role;
  failure.index = pod.role_index;
  failure.rank = pod.rank;
  failure.time = now;
  failure.created = pod.creation_time.value_or(absl::InfinitePast());
  return failure;
}

bool IsDisrupted(const PodView& pod) {
  return pod.disruption_target || pod.being_deleted ||
         (pod.phase == PodPhase::kFailed && IsDisruptionReason(pod.reason));
}

}  // namespace

bool Succeeded(const PodView& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.exit_code == 0;
}

bool Finished(const PodView& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

bool IsConfigError(const PodView& pod) {
  return pod.phase == PodPhase::kPending &&
         (pod.reason == "CreateContainerConfigError" ||
          pod.reason == "InvalidImageName");
}

std::optional<PodFailure> FailureOf(
    const PodView& pod, std::optional<absl::Time> config_error_since,
    absl::Time now) {
  if (Succeeded(pod)) return std::nullopt;
  PodFailure failure = Basics(pod, now);
  if (IsDisrupted(pod)) {
    ReadExit(pod, failure);
    failure.victim = false;
    failure.failed_rank.reset();
    failure.disruption = true;
    const bool said = pod.disruption_target || IsDisruptionReason(pod.reason);
    failure.reason = said ? DisruptionReason(pod) : "Deleted";
    failure.message = said && !pod.message.empty()
                          ? FirstLine(pod.message)
                          : fmt::format("pod {} was {}", pod.name,
                                        said ? "taken: " + failure.reason
                                             : "deleted by somebody");
    return failure;
  }
  if (pod.phase == PodPhase::kFailed || pod.exit_code) {
    ReadExit(pod, failure);
    failure.reason = failure.victim       ? "PeerLost"
                     : pod.reason.empty() ? "Error"
                                          : pod.reason;
    return failure;
  }
  if (IsConfigError(pod) && config_error_since &&
      now - *config_error_since >= kConfigErrorGrace) {
    failure.config_error = true;
    failure.reason = pod.reason;
    failure.message = fmt::format("{}: {}", pod.reason, FirstLine(pod.message));
    return failure;
  }
  return std::nullopt;
}

PodFailure MissingPod(const std::string& role, int index, int rank,
                      const std::string& pod, absl::Time now) {
  PodFailure failure;
  failure.pod = pod;
  failure.role = role;
  failure.index = index;
  failure.rank = rank;
  failure.reason = "Deleted";
  failure.message = fmt::format("pod {} is gone", pod);
  failure.disruption = true;
  failure.time = now;
  failure.created = absl::InfinitePast();
  return failure;
}

std::optional<size_t> RootCause(const std::vector<PodFailure>& failures,
                                std::optional<int> hint) {
  std::optional<size_t> first;
  for (size_t i = 0; i < failures.size(); ++i) {
    if (failures[i].victim) continue;
    if (hint && failures[i].rank == *hint) return i;
    if (!first || failures[i].time < failures[*first].time) first = i;
  }
  return first;
}

std::string Describe(const PodFailure& failure) {
  return fmt::format("rank {} ({}): {}", failure.rank, failure.role,
                     failure.message);
}

}  // namespace disttrain
