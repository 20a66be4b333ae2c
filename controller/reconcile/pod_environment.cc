// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pod_environment.h"

#include <string>
#include <utility>
#include <vector>

#include "controller/reconcile/json_fields.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

std::string Rank0Host(const Job& job) {
  return fmt::format("{}.{}.{}.svc",
                     HostName(job.name, job.spec.roles.front().name, 0),
                     job.name, job.namespace_);
}

// Position of the pod among all pods of the job.
int GroupRank(const JobSpec& spec, const PodIdentity& pod) {
  int rank = pod.index;
  for (size_t i = 0; i < pod.role; ++i) rank += spec.roles[i].replicas;
  return rank;
}

int Pods(const JobSpec& spec) {
  int pods = 0;
  for (const Role& role : spec.roles) pods += role.replicas;
  return pods;
}

void AddOurs(const Job& job, const PodIdentity& pod, const PodContext& context,
             Variables& out) {
  const JobSpec& spec = job.spec;
  const std::string& role = spec.roles[pod.role].name;
  out.insert(
      out.end(),
      {{env::kJob, job.namespace_ + "/" + job.name},
       {env::kJobUid, job.uid},
       {env::kAttempt, std::to_string(pod.attempt)},
       {env::kIncarnation, std::to_string(pod.incarnation)},
       {env::kRole, role},
       {env::kRoleIndex, std::to_string(pod.index)},
       {env::kRendezvous, RendezvousAddress(job, pod.attempt, context)},
       {env::kRendezvousTimeout,
        std::to_string(spec.rendezvous.timeout_seconds)},
       {env::kParameters,
        spec.parameters.dump(-1, ' ', false,
                             nlohmann::json::error_handler_t::replace)},
       {env::kMetricsPort, std::to_string(context.metrics_port.value_or(
                               spec.reporting.metrics_port))},
       {env::kReportInterval, std::to_string(spec.reporting.interval_seconds)},
       {env::kPodName,
        PodName(job.name, role, pod.index, pod.attempt, pod.incarnation)}});
  if (spec.roles[pod.role].restart == RestartScope::kRank) {
    out.emplace_back(env::kRestart, "Rank");
  }
  if (!spec.program.empty()) out.emplace_back(env::kProgram, spec.program);
  if (!context.tls_dir.empty()) {
    out.emplace_back(env::kTlsDir, context.tls_dir);
  }
  if (spec.checkpoint) {
    out.emplace_back(env::kCheckpointDir, spec.checkpoint->mount_path);
  }
}

void AddTorchrun(const Job& job, const PodIdentity& pod,
                 const PodContext& context, Variables& out) {
  const JobSpec& spec = job.spec;
  const Role& role = spec.roles[pod.role];
  const int processes = ProcessesPerPod(role, spec.main_container);
  const std::string group_rank = std::to_string(GroupRank(spec, pod));
  const std::string pods = std::to_string(Pods(spec));
  const std::string master =
      context.master_address.empty() ? Rank0Host(job) : context.master_address;
  const std::string port = std::to_string(env::kDefaultMasterPort);
  out.insert(
      out.end(),
      {{env::kRank, std::to_string(FirstRank(spec, pod.role, pod.index))},
       {env::kWorldSize, std::to_string(WorldSize(spec))},
       {env::kLocalRank, "0"},
       {env::kLocalWorldSize, std::to_string(processes)},
       {env::kGroupRank, group_rank},
       {env::kGroupWorldSize, pods},
       {env::kRoleName, role.name},
       {env::kRoleRank, std::to_string(pod.index * processes)},
       {env::kRoleWorldSize, std::to_string(role.replicas * processes)},
       {env::kMasterAddr, master},
       {env::kMasterPort, port},
       {env::kTorchelasticRestartCount, std::to_string(pod.attempt)},
       {env::kTorchelasticMaxRestarts,
        std::to_string(spec.failure_policy.max_restarts)},
       {env::kTorchelasticRunId, job.uid},
       {env::kPetNnodes, pods},
       {env::kPetNprocPerNode, std::to_string(processes)},
       {env::kPetNodeRank, group_rank},
       {env::kPetMasterAddr, master},
       {env::kPetMasterPort, port}});
}

}  // namespace

std::string RendezvousAddress(const Job& job, int attempt,
                              const PodContext& context) {
  if (!context.rendezvous_address.empty()) return context.rendezvous_address;
  if (context.socket_dir.empty()) {
    return fmt::format("{}:{}", Rank0Host(job), job.spec.rendezvous.port);
  }
  return attempt == 0
             ? fmt::format("unix:{}/rendezvous.sock", context.socket_dir)
             : fmt::format("unix:{}/rendezvous-r{}.sock", context.socket_dir,
                           attempt);
}

Json EnvironmentFor(const Job& job, const PodIdentity& pod,
                    const PodContext& context) {
  Variables variables;
  AddOurs(job, pod, context, variables);
  AddTorchrun(job, pod, context, variables);
  Json environment = Json::array();
  for (const auto& [name, value] : variables) {
    environment.push_back({{"name", name}, {"value", value}});
  }
  return environment;
}

void MergeEnvironment(const Json& environment, Json& container) {
  Json merged = environment;
  const auto has = [&merged](const std::string& name) {
    for (const Json& variable : merged) {
      if (json::Text(variable, "name") == name) return true;
    }
    return false;
  };
  // Ours come first, so that the template's may refer to them: $(RANK).
  for (const Json& variable : json::Array(container, "env")) {
    if (!has(json::Text(variable, "name"))) merged.push_back(variable);
  }
  for (const char* name : {"HOME", "CUDA_CACHE_PATH"}) {
    if (!has(name)) merged.push_back({{"name", name}, {"value", "/tmp"}});
  }
  container["env"] = std::move(merged);
}

}  // namespace disttrain
