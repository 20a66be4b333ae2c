// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "controller/api/job.h"

namespace disttrain {

// Name of the one node of a local run, and the address of all its pods.
inline constexpr char kLocalNode[] = "local";
inline constexpr char kLocalAddress[] = "127.0.0.1";

// The value of an env entry's fieldRef: metadata.name, .namespace, .uid,
// .labels['x'], .annotations['x'], spec.nodeName, spec.serviceAccountName,
// status.podIP(s), status.hostIP(s). A label or annotation that is not there
// is "". INVALID_ARGUMENT for any other path.
absl::StatusOr<std::string> PodField(const Json& pod,
                                     const std::string& field_path);

}  // namespace disttrain
