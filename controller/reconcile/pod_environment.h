// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller/api/job.h"
#include "controller/reconcile/pod_spec.h"

namespace disttrain {

// Which pod of a job.
struct PodIdentity {
  size_t role = 0;  // position in spec.roles
  int index = 0;
  int attempt = 0;
  int incarnation = 0;
};

// All variables of proto/contract/env.h for the processes of this pod, as a
// list of {"name", "value"}. With several processes in a pod the per-process
// ones (RANK, LOCAL_RANK, ROLE_RANK) are the first process's; the worker's
// entry process gives the others theirs.
Json EnvironmentFor(const Job& job, const PodIdentity& pod,
                    const PodContext& context);

// Puts each variable into container.env: ours replaces one of the same name and
// no name comes twice. HOME and CUDA_CACHE_PATH are defaults only.
void MergeEnvironment(const Json& environment, Json& container);

}  // namespace disttrain
