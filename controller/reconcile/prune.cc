// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/prune.h"

#include "controller/reconcile/json_fields.h"
#include "controller/reconcile/pod_spec.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

void Copy(const Json& from, Json& to, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json& value = json::At(from, key);
    if (!value.is_null()) to[key] = value;
  }
}

}  // namespace

Json PrunedPod(const Json& pod) {
  Json kept = Json::object();
  const Json& metadata = json::At(pod, "metadata");
  Copy(metadata, kept["metadata"],
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"});
  Copy(json::At(metadata, "labels"), kept["metadata"]["labels"],
       {label::kManaged, label::kJobName, label::kJobUid, label::kRole,
        label::kReplicaIndex, label::kRank, label::kAttempt,
        label::kIncarnation});
  Copy(json::At(metadata, "annotations"), kept["metadata"]["annotations"],
       {kDefaultContainerAnnotation});
  const Json& spec = json::At(pod, "spec");
  Copy(spec, kept["spec"], {"nodeName"});
  // Which container is the main one if no annotation says so.
  const Json& containers = json::Array(spec, "containers");
  if (!containers.empty()) {
    kept["spec"]["containers"] =
        Json::array({{{"name", json::Text(containers.front(), "name")}}});
  }
  Copy(json::At(pod, "status"), kept["status"],
       {"phase", "reason", "message", "conditions", "containerStatuses",
        "podIP", "startTime"});
  return kept;
}

}  // namespace disttrain
