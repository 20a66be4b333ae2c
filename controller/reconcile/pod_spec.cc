// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pod_spec.h"

#include <algorithm>

#include "controller/reconcile/json_fields.h"
#include "controller/reconcile/pod_environment.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

constexpr int64_t kUser = 65532;  // "nonroot" of distroless images

// The element of a named list ({"name": ...}) with this name, made if absent.
Json& Named(Json& list, const std::string& name) {
  for (Json& element : list) {
    if (json::Text(element, "name") == name) return element;
  }
  list.push_back({{"name", name}});
  return list.back();
}

void SetDefault(Json& object, const char* key, const Json& value) {
  if (!object.contains(key) || object[key].is_null()) object[key] = value;
}

Json OwnerOf(const Job& job) {
  return Json::array({{{"apiVersion", kApiVersion},
                       {"kind", kKind},
                       {"name", job.name},
                       {"uid", job.uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

Json LabelsFor(const Job& job, const PodIdentity& pod) {
  return {
      {label::kManaged, "true"},
      {label::kJobName, job.name},
      {label::kJobUid, job.uid},
      {label::kRole, job.spec.roles[pod.role].name},
      {label::kReplicaIndex, std::to_string(pod.index)},
      {label::kRank, std::to_string(FirstRank(job.spec, pod.role, pod.index))},
      {label::kAttempt, std::to_string(pod.attempt)},
      {label::kIncarnation, std::to_string(pod.incarnation)}};
}

std::string MainContainer(const Job& job, const Json& containers) {
  if (!job.spec.main_container.empty()) return job.spec.main_container;
  const std::string first = json::Text(containers.front(), "name");
  return first.empty() ? "worker" : first;
}

Json MetadataFor(const Job& job, const PodIdentity& pod, const Json& from,
                 const std::string& main_container) {
  Json metadata = from.is_object() ? from : Json::object();
  const Json labels = LabelsFor(job, pod);
  for (const auto& [key, value] : labels.items()) {
    metadata["labels"][key] = value;
  }
  metadata["annotations"][kDefaultContainerAnnotation] = main_container;
  metadata["name"] = PodName(job.name, job.spec.roles[pod.role].name, pod.index,
                             pod.attempt, pod.incarnation);
  metadata["namespace"] = job.namespace_;
  metadata["ownerReferences"] = OwnerOf(job);
  metadata.erase("generateName");
  return metadata;
}

// Folders that a program may write to, since its root file system is read-only.
void AddScratch(Json& spec) {
  const std::pair<const char*, Json> volumes[] = {
      {"disttrain-tmp", {{"emptyDir", Json::object()}}},
      {"disttrain-shm", {{"emptyDir", {{"medium", "Memory"}}}}},
      {"disttrain-run", {{"emptyDir", {{"medium", "Memory"}}}}}};
  if (!spec["volumes"].is_array()) spec["volumes"] = Json::array();
  for (const auto& [name, source] : volumes) {
    Named(spec["volumes"], name).update(source);
  }
}

void Mount(Json& container, const std::string& volume,
           const std::string& path) {
  if (!container["volumeMounts"].is_array()) {
    container["volumeMounts"] = Json::array();
  }
  for (const Json& mount : container["volumeMounts"]) {
    // The template has a folder of its own there.
    if (json::Text(mount, "mountPath") == path) return;
  }
  container["volumeMounts"].push_back({{"name", volume}, {"mountPath", path}});
}

void AddCheckpoint(const Job& job, Json& spec) {
  if (!job.spec.checkpoint) return;
  const std::string claim = job.spec.checkpoint->volume_claim.empty()
                                ? job.name + "-checkpoint"
                                : job.spec.checkpoint->volume_claim;
  Named(spec["volumes"], "disttrain-checkpoint")
      .update({{"persistentVolumeClaim", {{"claimName", claim}}}});
}

void Harden(Json& container) {
  Json& security = container["securityContext"];
  if (!security.is_object()) security = Json::object();
  SetDefault(security, "allowPrivilegeEscalation", false);
  SetDefault(security, "readOnlyRootFilesystem", true);
  SetDefault(security, "capabilities", {{"drop", {"ALL"}}});
}

void HardenPod(Json& spec) {
  Json& security = spec["securityContext"];
  if (!security.is_object()) security = Json::object();
  SetDefault(security, "runAsNonRoot", true);
  SetDefault(security, "runAsUser", kUser);
  SetDefault(security, "runAsGroup", kUser);
  SetDefault(security, "fsGroup", kUser);
  SetDefault(security, "seccompProfile", {{"type", "RuntimeDefault"}});
  SetDefault(spec, "automountServiceAccountToken", false);
  SetDefault(spec, "enableServiceLinks", false);
}

void FillContainer(const Job& job, const Json& environment, Json& container) {
  MergeEnvironment(environment, container);
  Mount(container, "disttrain-tmp", "/tmp");
  Mount(container, "disttrain-shm", "/dev/shm");
  Mount(container, "disttrain-run", "/run/disttrain");
  if (job.spec.checkpoint) {
    Mount(container, "disttrain-checkpoint", job.spec.checkpoint->mount_path);
  }
  Harden(container);
}

void FillMain(const Job& job, const PodContext& context, Json& container) {
  SetDefault(container, "image", context.image);
  SetDefault(container, "terminationMessagePath", env::kTerminationLog);
  if (job.spec.program.empty()) return;
  SetDefault(container, "command", context.worker_command);
  if (!container["ports"].is_array()) container["ports"] = Json::array();
  Named(container["ports"], "rendezvous")
      .update({{"containerPort", job.spec.rendezvous.port}});
  const int metrics =
      context.metrics_port.value_or(job.spec.reporting.metrics_port);
  if (metrics > 0) {
    Named(container["ports"], "metrics").update({{"containerPort", metrics}});
  }
}

void FillContainers(const Job& job, const Json& environment,
                    const std::string& main, const PodContext& context,
                    Json& spec) {
  for (Json& container : spec["containers"]) {
    SetDefault(container, "name", main);
    if (json::Text(container, "name") == main)
      FillMain(job, context, container);
    FillContainer(job, environment, container);
  }
  if (!json::At(spec, "initContainers").is_array()) return;
  for (Json& container : spec["initContainers"]) {
    FillContainer(job, environment, container);
  }
}

}  // namespace

Json PodFor(const Job& job, size_t role, int index, int attempt,
            int incarnation, const PodContext& context) {
  const PodIdentity identity{role, index, attempt, incarnation};
  const Json& from = job.spec.roles.at(role).pod_template;
  Json spec = json::At(from, "spec");
  if (!spec.is_object()) spec = Json::object();
  if (json::Array(spec, "containers").empty()) {
    spec["containers"] = Json::array({{{"name", "worker"}}});
  }
  const std::string main = MainContainer(job, spec["containers"]);
  spec["restartPolicy"] = "Never";
  spec["hostname"] = HostName(job.name, job.spec.roles[role].name, index);
  spec["subdomain"] = job.name;
  if (!job.spec.scheduling.priority_class_name.empty()) {
    SetDefault(spec, "priorityClassName",
               job.spec.scheduling.priority_class_name);
  }
  AddScratch(spec);
  AddCheckpoint(job, spec);
  HardenPod(spec);
  FillContainers(job, EnvironmentFor(job, identity, context), main, context,
                 spec);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           MetadataFor(job, identity, json::At(from, "metadata"), main)},
          {"spec", spec}};
}

Json ServiceFor(const Job& job, int attempt) {
  Json ports =
      Json::array({{{"name", "rendezvous"}, {"port", job.spec.rendezvous.port}},
                   {{"name", "master"}, {"port", env::kDefaultMasterPort}}});
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", job.name},
            {"namespace", job.namespace_},
            {"labels",
             {{label::kManaged, "true"},
              {label::kJobName, job.name},
              {label::kJobUid, job.uid}}},
            {"ownerReferences", OwnerOf(job)}}},
          {"spec",
           {{"clusterIP", "None"},
            // Ranks look each other up before they are ready.
            {"publishNotReadyAddresses", true},
            {"selector",
             {{label::kJobUid, job.uid},
              {label::kAttempt, std::to_string(attempt)}}},
            {"ports", ports}}}};
}

std::string TemplateHash(const JobSpec& spec) {
  Json templates = Json::array();
  for (const Role& role : spec.roles) {
    templates.push_back({role.name, role.pod_template});
  }
  // FNV-1a over the canonical form (object keys are sorted).
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : templates.dump(
           -1, ' ', false, nlohmann::json::error_handler_t::replace)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace disttrain
