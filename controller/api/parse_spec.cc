// SPDX-License-Identifier: Apache-2.0
#include "controller/api/parse_spec.h"

#include <algorithm>
#include <charconv>

#include "controller/api/names.h"
#include "controller/api/validate_job.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr IntRange kPort{1, 65535};

StringRule LabelRule(size_t max_length) {
  return {[max_length](const std::string& text) {
            return IsRfc1035Label(text, max_length);
          },
          fmt::format("a lower-case label of at most {} characters "
                      "([a-z]([-a-z0-9]*[a-z0-9])?)",
                      max_length)};
}

StringRule SubdomainRule(const std::string& what) {
  return {[](const std::string& text) {
            return text.empty() || IsDnsSubdomain(text);
          },
          fmt::format("{} (lower-case letters, digits, '-', '.')", what)};
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

bool IsResume(const std::string& text) {
  constexpr std::string_view kStep = "Step:";
  if (text == "Latest" || text == "None") return true;
  return text.starts_with(kStep) && text.size() <= kStep.size() + 18 &&
         IsDigits(std::string_view(text).substr(kStep.size()));
}

}  // namespace

void ReadRole(ObjectReader& reader, Role& role) {
  if (reader.Require("name")) {
    reader.Read("name", role.name, LabelRule(kMaxRoleName));
  }
  reader.Read("replicas", role.replicas, {1, kMaxReplicas});
  reader.Read("processesPerPod", role.processes_per_pod,
              {1, kMaxProcessesPerPod});
  reader.Read("startAfter", role.start_after);
  reader.ReadChoice<RestartScope>(
      "restart", role.restart,
      {{"Gang", RestartScope::kGang}, {"Rank", RestartScope::kRank}});
  reader.Read("elastic", [&](ObjectReader& elastic) {
    Elastic bounds;
    if (elastic.Require("minReplicas")) {
      elastic.Read("minReplicas", bounds.min_replicas, {1, kMaxReplicas});
    }
    if (elastic.Require("maxReplicas")) {
      elastic.Read("maxReplicas", bounds.max_replicas, {1, kMaxReplicas});
    }
    elastic.Read("shrinkAfterSeconds", bounds.shrink_after_seconds, {});
    role.elastic = bounds;
  });
  reader.ReadObject("template", role.pod_template);
}

void ReadSuccessPolicy(ObjectReader& reader, SuccessPolicy& policy) {
  reader.ReadChoice<SuccessMode>("mode", policy.mode,
                                 {{"AllRanks", SuccessMode::kAllRanks},
                                  {"Rank0", SuccessMode::kRank0},
                                  {"AnyRank", SuccessMode::kAnyRank}});
  reader.Read("metric", [&](ObjectReader& metric) {
    MetricTarget target;
    if (metric.Require("name")) {
      metric.ReadChoice("name", target.name, TargetMetrics());
    }
    metric.ReadChoice("op", target.op, {"GreaterOrEqual", "LessOrEqual"});
    std::string threshold;
    if (metric.Require("threshold")) {
      metric.Read("threshold", threshold,
                  {IsDecimal, "a decimal number in quotes, such as \"475\""});
    }
    std::from_chars(threshold.data(), threshold.data() + threshold.size(),
                    target.threshold);
    metric.Read("consecutiveReports", target.consecutive_reports, {1, 1000});
    policy.metric = target;
  });
}

void ReadDeadlines(ObjectReader& reader, Deadlines& deadlines) {
  reader.Read("pendingSeconds", deadlines.pending_seconds, {});
  reader.Read("activeSeconds", deadlines.active_seconds, {});
  reader.Read("progressSeconds", deadlines.progress_seconds, {});
}

void ReadCleanup(ObjectReader& reader, Cleanup& cleanup) {
  reader.ReadChoice<CleanupPodPolicy>("podPolicy", cleanup.pod_policy,
                                      {{"Running", CleanupPodPolicy::kRunning},
                                       {"All", CleanupPodPolicy::kAll},
                                       {"None", CleanupPodPolicy::kNone}});
  reader.Read("ttlSecondsAfterFinished", cleanup.ttl_seconds_after_finished,
              {});
  reader.Read("ttlSecondsAfterFailed", cleanup.ttl_seconds_after_failed, {});
}

void ReadScheduling(ObjectReader& reader, Scheduling& scheduling) {
  reader.ReadChoice(
      "gang", scheduling.gang,
      {"Auto", "None", "Volcano", "Coscheduling", "KAI", "Native"});
  reader.Read("queue", scheduling.queue, SubdomainRule("the name of a queue"));
  reader.Read("priorityClassName", scheduling.priority_class_name,
              SubdomainRule("the name of a priority class"));
  reader.Read("minMember", scheduling.min_member, {1, kMaxWorldSize});
  reader.Read("scheduleTimeoutSeconds", scheduling.schedule_timeout_seconds,
              {});
  reader.Read("topology", [&](ObjectReader& topology) {
    std::string key;
    std::string mode = "Preferred";
    if (topology.Require("key")) {
      topology.Read("key", key,
                    {[](const std::string& text) { return IsLabelKey(text); },
                     "a label of nodes, such as topology.kubernetes.io/zone"});
    }
    topology.ReadChoice("mode", mode, {"Preferred", "Required", "Exclusive"});
    scheduling.topology = Json{{"key", key}, {"mode", mode}};
  });
}

void ReadNetwork(ObjectReader& reader, Network& network) {
  reader.ReadChoice<bool>("tls", network.tls_required,
                          {{"Required", true}, {"Disabled", false}});
  reader.ReadChoice<bool>("collectives", network.collectives_encrypted,
                          {{"Any", false}, {"Encrypted", true}});
  reader.ReadChoice<bool>("policy", network.job_only_policy,
                          {{"JobOnly", true}, {"None", false}});
}

void ReadCheckpoint(ObjectReader& reader, Checkpoint& checkpoint) {
  reader.Read("mountPath", checkpoint.mount_path,
              {[](const std::string& path) {
                 return path.size() <= 1024 && path.starts_with('/') &&
                        path.find(':') == std::string::npos;
               },
               "an absolute path without ':'"});
  reader.Read("volumeClaim", checkpoint.volume_claim,
              SubdomainRule("the name of a PersistentVolumeClaim"));
  reader.ReadObject("volumeClaimTemplate", checkpoint.volume_claim_template);
  reader.Read("retain", checkpoint.retain);
  reader.Read("resume", checkpoint.resume,
              {IsResume, "Latest, None or Step:<n>"});
  reader.ReadChoice<bool>("onTermination", checkpoint.save_on_termination,
                          {{"Save", true}, {"None", false}});
}

void ReadReporting(ObjectReader& reader, Reporting& reporting) {
  reader.Read("intervalSeconds", reporting.interval_seconds, {1, 3600});
  reader.Read("metricsPort", reporting.metrics_port, kPort);
  reader.Read("tensorboard", reporting.tensorboard);
}

}  // namespace disttrain
