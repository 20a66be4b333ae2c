// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/job.h"

namespace disttrain {

// kubectl's name for the annotation that says whose logs are meant.
inline constexpr char kDefaultContainerAnnotation[] =
    "kubectl.kubernetes.io/default-container";

// What a pod needs to know besides its job: how this installation starts
// workers and how they find each other.
struct PodContext {
  // Image of a container that names none.
  std::string image = "disttrain/worker:latest";
  // Command of the main container of a job with a `program`, if the template
  // gives none. Locally: {"/path/to/disttrain-worker"}.
  std::vector<std::string> worker_command = {"disttrain-worker"};
  // "": addresses of a cluster ("<job>-<role>-0.<job>.<namespace>.svc:<port>").
  // Else a folder on this machine: "unix:<socket_dir>/rendezvous.sock", and
  // from attempt 1 on "unix:<socket_dir>/rendezvous-r<attempt>.sock", so that
  // the end of an old rank 0 never removes the socket of a new one.
  std::string socket_dir;
  // Overrides both: "host:port" (local runs over TCP). "": not set.
  std::string rendezvous_address;
  // MASTER_ADDR; "": rank 0's host in the cluster.
  std::string master_address;
  // Overrides spec.reporting.metricsPort; 0 lets the kernel choose.
  std::optional<int> metrics_port;
  // Folder with ca.crt, tls.crt and tls.key in the pod; "": no TLS.
  std::string tls_dir;
};

// Where rank 0 of `attempt` serves its rendezvous, as a gRPC target and as the
// value of DISTTRAIN_RENDEZVOUS.
std::string RendezvousAddress(const Job& job, int attempt,
                              const PodContext& context);

// The pod `index` of spec.roles[role], ready to be created: the role's template
// with names, labels, owner, environment (in every container and init
// container), restartPolicy Never, scratch volumes and a restricted security
// context. What the template sets wins, except for what identifies the rank.
//
// The main container carries the annotation
// kubectl.kubernetes.io/default-container, which PodViewFromJson reads.
Json PodFor(const Job& job, size_t role, int index, int attempt,
            int incarnation, const PodContext& context);

// The headless Service that gives pods their names. Its selector follows
// `attempt`, so that names never lead to an earlier attempt's pods.
Json ServiceFor(const Job& job, int attempt);

// Changes whenever a role's template does. 16 hexadecimal digits.
std::string TemplateHash(const JobSpec& spec);

}  // namespace disttrain
