// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "controller/api/job.h"

namespace disttrain {

// Applies one `--set path=value` to a manifest and returns the full path of
// the field that was set ("spec.parameters.seed").
//
// The path is relative to spec, unless it begins with spec. or metadata.
// Elements of lists go by index (roles[1].replicas) or by name
// (roles.observer.replicas); a key that is no plain name stands in brackets
// (limits["nvidia.com/gpu"]). Missing objects are made; the index behind the
// last element adds one.
//
// The value is a plain YAML scalar (7, true, null, text), or, if it begins with
// one of " ' [ {, any YAML. An empty value is an empty string.
//
// Errors: INVALID_ARGUMENT that names the argument, and what stands where the
// path cannot go on.
absl::StatusOr<std::string> ApplySet(const std::string& argument,
                                     Json& manifest);

}  // namespace disttrain
