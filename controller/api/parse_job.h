// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/api/field_error.h"
#include "controller/api/job.h"

namespace disttrain {

// What the installation lets a job's pod template ask for.
struct AdmissionOptions {
  // Host namespaces, hostPath volumes and privileged containers.
  bool allow_host_access = false;
};

struct ParsedJob {
  Job job;  // as far as it could be read; complete if there are no errors
  std::vector<FieldError> errors;
};

// A DistTrainingJob object (a manifest, or what the API server sends) with
// defaults filled in, and every mistake in it: unknown fields, wrong types,
// values out of range, and the rules between fields. null means absent, as in
// Kubernetes. `status` is taken as it is.
ParsedJob ParseAndValidate(const Json& object,
                           const AdmissionOptions& options = {});

// The same, for callers that need the job or nothing.
// Errors: INVALID_ARGUMENT, one mistake a line, each with its field's path.
absl::StatusOr<Job> ParseJob(const Json& object,
                             const AdmissionOptions& options = {});

}  // namespace disttrain
