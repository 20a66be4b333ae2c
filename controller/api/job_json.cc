// SPDX-License-Identifier: Apache-2.0
#include "controller/api/job_json.h"

#include <array>
#include <charconv>

#include "fmt/format.h"
#include "proto/contract/labels.h"
#include "proto/runtime/check.h"

namespace disttrain {
namespace {

template <class T>
void Set(Json& object, const char* key, const std::optional<T>& value) {
  if (value.has_value()) object[key] = *value;
}

void Set(Json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

void Set(Json& object, const char* key, const std::vector<std::string>& value) {
  if (!value.empty()) object[key] = value;
}

Json RoleJson(const Role& role) {
  Json json = {
      {"name", role.name},
      {"replicas", role.replicas},
      {"restart", role.restart == RestartScope::kGang ? "Gang" : "Rank"}};
  Set(json, "processesPerPod", role.processes_per_pod);
  Set(json, "startAfter", role.start_after);
  if (role.elastic.has_value()) {
    json["elastic"] = {
        {"minReplicas", role.elastic->min_replicas},
        {"maxReplicas", role.elastic->max_replicas},
        {"shrinkAfterSeconds", role.elastic->shrink_after_seconds}};
  }
  if (!role.pod_template.empty()) json["template"] = role.pod_template;
  return json;
}

const char* ActionName(FailureAction action) {
  switch (action) {
    case FailureAction::kFail:
      return "Fail";
    case FailureAction::kRestart:
      return "Restart";
    case FailureAction::kRestartFree:
      return "RestartFree";
    case FailureAction::kIgnore:
      return "Ignore";
  }
  DISTTRAIN_CHECK(false);
}

Json RuleJson(const FailureRule& rule) {
  Json json = {{"name", rule.name}, {"action", ActionName(rule.action)}};
  if (!rule.exit_codes.empty()) json["exitCodes"] = rule.exit_codes;
  for (const auto& [first, last] : rule.exit_code_ranges) {
    json["exitCodeRanges"].push_back(fmt::format("{}-{}", first, last));
  }
  Set(json, "reasons", rule.reasons);
  Set(json, "conditions", rule.conditions);
  Set(json, "roles", rule.roles);
  Set(json, "messagePattern", rule.message_pattern);
  return json;
}

Json FailurePolicyJson(const FailurePolicy& policy) {
  Json json = {{"maxRestarts", policy.max_restarts},
               {"maxDisruptions", policy.max_disruptions},
               {"method", policy.method},
               {"preset", policy.preset},
               {"backoff",
                {{"initialSeconds", policy.backoff.initial_seconds},
                 {"maxSeconds", policy.backoff.max_seconds},
                 {"resetAfterSeconds", policy.backoff.reset_after_seconds}}}};
  for (const FailureRule& rule : policy.rules) {
    json["rules"].push_back(RuleJson(rule));
  }
  return json;
}

// The shortest text without an exponent that reads back as `value`.
std::string Decimal(double value) {
  std::array<char, 400> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    std::chars_format::fixed);
  return {buffer.data(), result.ptr};
}

Json SuccessPolicyJson(const SuccessPolicy& policy) {
  Json json = {{"mode", policy.mode == SuccessMode::kAllRanks ? "AllRanks"
                        : policy.mode == SuccessMode::kRank0  ? "Rank0"
                                                              : "AnyRank"}};
  if (policy.metric.has_value()) {
    json["metric"] = {
        {"name", policy.metric->name},
        {"op", policy.metric->op},
        {"threshold", Decimal(policy.metric->threshold)},
        {"consecutiveReports", policy.metric->consecutive_reports}};
  }
  return json;
}

Json CleanupJson(const Cleanup& cleanup) {
  Json json = {
      {"podPolicy", cleanup.pod_policy == CleanupPodPolicy::kRunning ? "Running"
                    : cleanup.pod_policy == CleanupPodPolicy::kAll   ? "All"
                                                                     : "None"}};
  Set(json, "ttlSecondsAfterFinished", cleanup.ttl_seconds_after_finished);
  Set(json, "ttlSecondsAfterFailed", cleanup.ttl_seconds_after_failed);
  return json;
}

Json SchedulingJson(const Scheduling& scheduling) {
  Json json = {{"gang", scheduling.gang},
               {"scheduleTimeoutSeconds", scheduling.schedule_timeout_seconds}};
  Set(json, "queue", scheduling.queue);
  Set(json, "priorityClassName", scheduling.priority_class_name);
  Set(json, "minMember", scheduling.min_member);
  if (!scheduling.topology.is_null()) json["topology"] = scheduling.topology;
  return json;
}

Json NetworkJson(const Network& network) {
  return {{"tls", network.tls_required ? "Required" : "Disabled"},
          {"collectives", network.collectives_encrypted ? "Encrypted" : "Any"},
          {"policy", network.job_only_policy ? "JobOnly" : "None"}};
}

Json CheckpointJson(const Checkpoint& checkpoint) {
  Json json = {
      {"mountPath", checkpoint.mount_path},
      {"retain", checkpoint.retain},
      {"resume", checkpoint.resume},
      {"onTermination", checkpoint.save_on_termination ? "Save" : "None"}};
  Set(json, "volumeClaim", checkpoint.volume_claim);
  if (!checkpoint.volume_claim_template.is_null()) {
    json["volumeClaimTemplate"] = checkpoint.volume_claim_template;
  }
  return json;
}

Json SpecJson(const JobSpec& spec) {
  Json json = {{"parameters", spec.parameters},
               {"suspend", spec.suspend},
               {"managedBy", spec.managed_by},
               {"roles", Json::array()},
               {"rendezvous",
                {{"port", spec.rendezvous.port},
                 {"timeoutSeconds", spec.rendezvous.timeout_seconds}}},
               {"failurePolicy", FailurePolicyJson(spec.failure_policy)},
               {"successPolicy", SuccessPolicyJson(spec.success_policy)},
               {"deadlines",
                {{"pendingSeconds", spec.deadlines.pending_seconds},
                 {"activeSeconds", spec.deadlines.active_seconds},
                 {"progressSeconds", spec.deadlines.progress_seconds}}},
               {"cleanup", CleanupJson(spec.cleanup)},
               {"scheduling", SchedulingJson(spec.scheduling)},
               {"network", NetworkJson(spec.network)},
               {"reporting",
                {{"intervalSeconds", spec.reporting.interval_seconds},
                 {"metricsPort", spec.reporting.metrics_port},
                 {"tensorboard", spec.reporting.tensorboard}}}};
  Set(json, "program", spec.program);
  Set(json, "mainContainer", spec.main_container);
  for (const Role& role : spec.roles) json["roles"].push_back(RoleJson(role));
  if (spec.checkpoint.has_value()) {
    json["checkpoint"] = CheckpointJson(*spec.checkpoint);
  }
  return json;
}

}  // namespace

Json ToJson(const Job& job) {
  Json metadata = {{"name", job.name},
                   {"namespace", job.namespace_},
                   {"generation", job.generation}};
  Set(metadata, "uid", job.uid);
  Set(metadata, "resourceVersion", job.resource_version);
  Set(metadata, "creationTimestamp", job.creation_timestamp);
  if (!job.labels.empty()) metadata["labels"] = job.labels;
  if (!job.annotations.empty()) metadata["annotations"] = job.annotations;
  Json json = {{"apiVersion", kApiVersion},
               {"kind", kKind},
               {"metadata", metadata},
               {"spec", SpecJson(job.spec)}};
  if (!job.status.empty()) json["status"] = job.status;
  return json;
}

}  // namespace disttrain
