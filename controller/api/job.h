// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

// DistTrainingJob (disttrain.dev/v1alpha1) as plain data: what the parser makes
// of a manifest after defaulting, and what the reconcile code decides on.
namespace disttrain {

using Json = nlohmann::json;

enum class RestartScope { kGang, kRank };

struct Elastic {
  int min_replicas = 1;
  int max_replicas = 1;
  int shrink_after_seconds = 60;
  bool operator==(const Elastic&) const = default;
};

struct Role {
  std::string name;  // RFC 1035 label, <= 12 characters
  int replicas = 1;
  // Absent: the GPU limit of the main container, or 1 (see ProcessesPerPod()).
  std::optional<int> processes_per_pod;
  std::string start_after;  // "": at once
  RestartScope restart = RestartScope::kGang;
  std::optional<Elastic> elastic;
  Json pod_template =
      Json::object();  // PodTemplateSpec; {}: the chart's defaults
  bool operator==(const Role&) const = default;
};

struct Rendezvous {
  int port = 29400;
  int timeout_seconds = 300;
  bool operator==(const Rendezvous&) const = default;
};

enum class FailureAction { kFail, kRestart, kRestartFree, kIgnore };

// All given criteria are alternatives within one field; a rule matches if every
// field that it gives matches.
struct FailureRule {
  std::string name;
  FailureAction action = FailureAction::kRestart;
  std::vector<int> exit_codes;
  std::vector<std::pair<int, int>> exit_code_ranges;  // both ends included
  std::vector<std::string> reasons;
  std::vector<std::string> conditions;
  std::vector<std::string> roles;
  std::string message_pattern;  // "": none
  bool operator==(const FailureRule&) const = default;
};

struct RestartBackoff {
  int initial_seconds = 5;
  int max_seconds = 300;
  int reset_after_seconds = 1800;
  bool operator==(const RestartBackoff&) const = default;
};

struct FailurePolicy {
  int max_restarts = 3;
  int max_disruptions = 100;
  std::string method = "Auto";     // Auto | Recreate | InPlace
  std::string preset = "Default";  // Default | KubeflowExitCode
  RestartBackoff backoff;
  std::vector<FailureRule> rules;
  bool operator==(const FailurePolicy&) const = default;
};

enum class SuccessMode { kAllRanks, kRank0, kAnyRank };

struct MetricTarget {
  std::string name;
  std::string op = "GreaterOrEqual";  // GreaterOrEqual | LessOrEqual
  double threshold = 0;
  int consecutive_reports = 1;
  bool operator==(const MetricTarget&) const = default;
};

struct SuccessPolicy {
  SuccessMode mode = SuccessMode::kAllRanks;
  std::optional<MetricTarget> metric;
  bool operator==(const SuccessPolicy&) const = default;
};

// 0 is off.
struct Deadlines {
  int pending_seconds = 0;
  int64_t active_seconds = 0;
  int progress_seconds = 0;
  bool operator==(const Deadlines&) const = default;
};

enum class CleanupPodPolicy { kRunning, kAll, kNone };

struct Cleanup {
  CleanupPodPolicy pod_policy = CleanupPodPolicy::kRunning;
  std::optional<int64_t> ttl_seconds_after_finished;
  std::optional<int64_t> ttl_seconds_after_failed;
  bool operator==(const Cleanup&) const = default;
};

struct Scheduling {
  std::string gang = "Auto";
  std::string queue;
  std::string priority_class_name;
  std::optional<int> min_member;
  int schedule_timeout_seconds = 300;
  Json topology;  // null: none
  bool operator==(const Scheduling&) const = default;
};

struct Network {
  bool tls_required = true;
  bool collectives_encrypted = false;
  bool job_only_policy = true;
  bool operator==(const Network&) const = default;
};

struct Checkpoint {
  std::string mount_path = "/checkpoint";
  std::string volume_claim;
  Json volume_claim_template;  // null: none
  bool retain = true;
  std::string resume = "Latest";  // Latest | None | Step:<n>
  bool save_on_termination = true;
  bool operator==(const Checkpoint&) const = default;
};

struct Reporting {
  int interval_seconds = 10;
  int metrics_port = 9400;
  bool tensorboard = false;
  bool operator==(const Reporting&) const = default;
};

struct JobSpec {
  std::string program;  // "": the container's own command
  Json parameters = Json::object();
  bool suspend = false;
  std::string managed_by = "disttrain.dev/controller";
  std::vector<Role> roles;
  std::string main_container;  // "": the first one
  Rendezvous rendezvous;
  FailurePolicy failure_policy;
  SuccessPolicy success_policy;
  Deadlines deadlines;
  Cleanup cleanup;
  Scheduling scheduling;
  Network network;
  std::optional<Checkpoint> checkpoint;
  Reporting reporting;
  bool operator==(const JobSpec&) const = default;
};

struct Job {
  std::string name;
  std::string namespace_ = "default";
  std::string uid;
  int64_t generation = 1;
  std::string resource_version;
  bool being_deleted = false;  // metadata.deletionTimestamp is set
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string creation_timestamp;
  JobSpec spec;
  // As stored: {} on a new job. reconcile/job_status owns its shape.
  Json status = Json::object();
  bool operator==(const Job&) const = default;
};

// The container that runs the program: the one called `name`, or the first one
// if `name` is "". nullptr if the template gives none (the chart's default
// container runs then) or none of that name.
const Json* MainContainer(const Role& role, const std::string& name);

// Processes in each pod of `role`: what it says, else the nvidia.com/gpu limit
// of its main container (JobSpec::main_container), else 1.
int ProcessesPerPod(const Role& role, const std::string& main_container = "");

// Sum over roles of replicas x processes per pod.
int WorldSize(const JobSpec& spec);

// Global rank of the first process of pod `index` of `spec.roles[role]`.
int FirstRank(const JobSpec& spec, size_t role, int index);

}  // namespace disttrain
