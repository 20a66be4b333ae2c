// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "controller/api/field_error.h"
#include "controller/api/job.h"
#include "controller/api/parse_job.h"

namespace disttrain {

// Adds the mistakes in the pod template of spec.roles[index]: shapes we rely
// on, names, fields and variables that are ours to set, access to the host, and
// likely typing errors. Everything else is for the API server to judge.
void ValidateTemplate(const JobSpec& spec, size_t index,
                      const AdmissionOptions& options,
                      std::vector<FieldError>& errors);

}  // namespace disttrain
