// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/node_twin.h"

#include "gtest/gtest.h"

namespace disttrain {
namespace {

constexpr char kNamespace[] = "default";

void ExpectOk(const absl::Status& status) {
  EXPECT_TRUE(status.ok()) << status;
}

bool IsDeleted(const Json& pod) {
  return pod["metadata"].contains("deletionTimestamp");
}

}  // namespace

std::vector<std::string> NodeTwin::Pods() const {
  std::vector<std::string> names;
  const auto list = api_.List(Resource::kPods, kNamespace, "");
  ExpectOk(list.status());
  for (const Json& pod : list->items) {
    names.push_back(pod["metadata"]["name"]);
  }
  return names;
}

bool NodeTwin::Has(const std::string& pod) const {
  const auto found = api_.Get(Resource::kPods, kNamespace, pod);
  return found.ok() && !IsDeleted(*found);
}

Json NodeTwin::Get(const std::string& pod) const {
  const auto found = api_.Get(Resource::kPods, kNamespace, pod);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : Json();
}

void NodeTwin::Run(const std::string& pod) {
  if (Get(pod)["spec"].value("nodeName", "").empty()) {
    ExpectOk(api_.Bind(kNamespace, pod, "node-" + pod).status());
  }
  Json running = Get(pod);
  running["status"]["phase"] = "Running";
  running["status"]["startTime"] = Timestamp();
  running["status"]["conditions"] =
      Json::array({{{"type", "PodScheduled"}, {"status", "True"}},
                   {{"type", "Ready"}, {"status", "True"}}});
  running["status"]["containerStatuses"] = Json::array(
      {ContainerStatus(running, {{"running", {{"startedAt", Timestamp()}}}})});
  Write(running);
}

void NodeTwin::RunAll() {
  for (const std::string& pod : Pods()) {
    const Json object = Get(pod);
    if (!IsDeleted(object) && object["status"]["phase"] == "Pending") Run(pod);
  }
}

void NodeTwin::End(const std::string& pod, const PodEnd& end) {
  Json ended = Get(pod);
  const bool good = end.exit_code == 0;
  ended["status"]["phase"] = good ? "Succeeded" : "Failed";
  Json terminated = {{"exitCode", end.exit_code},
                     {"reason", !end.reason.empty() ? end.reason
                                : good              ? "Completed"
                                                    : "Error"},
                     {"finishedAt", Timestamp()}};
  if (end.signal != 0) terminated["signal"] = end.signal;
  if (!end.message.empty()) terminated["message"] = end.message;
  ended["status"]["containerStatuses"] =
      Json::array({ContainerStatus(ended, {{"terminated", terminated}})});
  Write(ended);
}

void NodeTwin::Reject(const std::string& pod, const std::string& reason,
                      const std::string& message) {
  Json rejected = Get(pod);
  rejected["status"] = {
      {"phase", "Failed"}, {"reason", reason}, {"message", message}};
  Write(rejected);
}

void NodeTwin::SetCondition(const std::string& pod, const std::string& type,
                            const std::string& reason,
                            const std::string& message) {
  Json changed = Get(pod);
  changed["status"]["conditions"].push_back({{"type", type},
                                             {"status", "True"},
                                             {"reason", reason},
                                             {"message", message}});
  Write(changed);
}

void NodeTwin::Hold(const std::string& pod, const std::string& reason,
                    const std::string& message) {
  if (Get(pod)["spec"].value("nodeName", "").empty()) {
    ExpectOk(api_.Bind(kNamespace, pod, "node-" + pod).status());
  }
  Json held = Get(pod);
  held["status"]["containerStatuses"] = Json::array({ContainerStatus(
      held, {{"waiting", {{"reason", reason}, {"message", message}}}})});
  Write(held);
}

void NodeTwin::Delete(const std::string& pod) {
  ExpectOk(api_.Delete(Resource::kPods, kNamespace, pod, {}));
}

void NodeTwin::Vanish(const std::string& pod) {
  DeleteOptions options;
  options.grace_seconds = 0;
  ExpectOk(api_.Delete(Resource::kPods, kNamespace, pod, options));
}

void NodeTwin::FinishDeletions() {
  for (const std::string& pod : Pods()) {
    if (IsDeleted(Get(pod))) Vanish(pod);
  }
}

void NodeTwin::Write(Json pod) {
  ExpectOk(api_.UpdateStatus(Resource::kPods, pod).status());
}

Json NodeTwin::ContainerStatus(const Json& pod, const Json& state) const {
  return {{"name", pod["spec"]["containers"][0]["name"]},
          {"ready", state.contains("running")},
          {"restartCount", 0},
          {"state", state}};
}

std::string NodeTwin::Timestamp() const {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", clock_.Now(),
                          absl::UTCTimeZone());
}

}  // namespace disttrain
