// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller/api/job.h"

namespace disttrain {

// The job as a DistTrainingJob object. Defaults are written out; what is
// optional and absent stays absent. ParseJob of the result gives `job` again,
// but for being_deleted: the deletionTimestamp is the API server's.
Json ToJson(const Job& job);

}  // namespace disttrain
