// SPDX-License-Identifier: Apache-2.0
#include "controller/local/pod_status.h"

#include <utility>

#include "controller/local/downward_api.h"
#include "controller/local/json_field.h"

namespace disttrain {
namespace {

// With milliseconds, which Kubernetes cuts: they help to order failures.
std::string Timestamp(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

Json Condition(const char* type, bool holds, absl::Time since) {
  return {{"type", type},
          {"status", holds ? "True" : "False"},
          {"lastTransitionTime", Timestamp(since)}};
}

Json WithStatus(Json pod, const char* phase, bool ready, absl::Time since,
                Json container_state) {
  const Json container = pod.at("spec").at("containers").at(0);
  Json& status = pod["status"];
  status["phase"] = phase;
  status["podIP"] = kLocalAddress;
  status["podIPs"] = Json::array({{{"ip", kLocalAddress}}});
  status["hostIP"] = kLocalAddress;
  status["startTime"] = status.value("startTime", Timestamp(since));
  status["conditions"] =
      Json::array({Condition("PodScheduled", true, since),
                   Condition("Initialized", true, since),
                   Condition("ContainersReady", ready, since),
                   Condition("Ready", ready, since)});
  const bool running = container_state.contains("running");
  status["containerStatuses"] =
      Json::array({{{"name", StringField(container, "name")},
                    {"image", StringField(container, "image")},
                    {"imageID", ""},
                    {"ready", ready},
                    {"started", running},
                    {"restartCount", 0},
                    {"state", std::move(container_state)}}});
  return pod;
}

}  // namespace

Json WithRunning(Json pod, absl::Time started) {
  return WithStatus(std::move(pod), "Running", true, started,
                    {{"running", {{"startedAt", Timestamp(started)}}}});
}

Json WithTermination(Json pod, const Termination& termination) {
  Json terminated = {{"exitCode", termination.exit_code},
                     {"reason", termination.reason},
                     {"startedAt", Timestamp(termination.started)},
                     {"finishedAt", Timestamp(termination.finished)}};
  if (termination.signal != 0) terminated["signal"] = termination.signal;
  if (!termination.message.empty()) terminated["message"] = termination.message;
  return WithStatus(
      std::move(pod), termination.exit_code == 0 ? "Succeeded" : "Failed",
      false, termination.finished, {{"terminated", std::move(terminated)}});
}

}  // namespace disttrain
