// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/api/job.h"
#include "controller/local/supervisor_protocol.h"

// A pod's main container as a process of this machine. Pure.
namespace disttrain {

// What this machine adds to a pod.
struct HostContext {
  // "NAME=value" entries below the container's own (see HostEnvironment).
  std::vector<std::string> env;
  std::string log_path;
  // Becomes DISTTRAIN_TERMINATION_MESSAGE_PATH.
  std::string termination_message_path;
};

struct PodProcess {
  StartProcess start;  // id: the pod's uid
  // What a cluster would do and this machine does not, one line each.
  std::vector<std::string> warnings;
};

// The process of `pod`: command and args, environment with $(VAR) references
// and the downward API resolved, working directory.
// Errors: INVALID_ARGUMENT for what cannot be done without a cluster: several
// containers, init containers, no command, values from Secrets, ConfigMaps or
// resource fields that are not optional. The message names the field.
absl::StatusOr<PodProcess> ProcessFor(const Json& pod,
                                      const HostContext& context);

// The entries of `environment` that a process gets whatever its pod says: where
// programs and libraries are found (PATH, LD_LIBRARY_PATH, Python's, CUDA's),
// locale, terminal, proxies; nothing else of the launcher's.
std::vector<std::string> HostEnvironment(const char* const* environment);

// Kubernetes' $(NAME) references, replaced from `env` ("NAME=value" entries,
// the last wins). Unknown names stay as they are; $$(NAME) is $(NAME).
std::string ExpandReferences(const std::string& text,
                             const std::vector<std::string>& env);

}  // namespace disttrain
