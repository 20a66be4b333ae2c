// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "controller/api/job.h"
#include "disttrain/v1/progress.pb.h"

namespace disttrain {

// Asks a job's rank 0 how far the training is.
//
// Threads: thread-safe.
// Blocking: 5 s at most. Errors: UNAVAILABLE while rank 0 starts or is gone,
// FAILED_PRECONDITION if another job or attempt answers.
class ProgressSource {
 public:
  virtual ~ProgressSource() = default;

  // `address` as RendezvousAddress makes it.
  virtual absl::StatusOr<v1::Progress> Get(const Job& job, int attempt,
                                           const std::string& address) = 0;

  // Asks all ranks to leave with exit code 75 (or 0 after a reached target),
  // saving a checkpoint first if `save`.
  virtual absl::Status Stop(const Job& job, int attempt,
                            const std::string& address, bool save,
                            const std::string& reason) = 0;
};

}  // namespace disttrain
