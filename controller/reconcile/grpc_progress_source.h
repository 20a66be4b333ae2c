// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "controller/reconcile/progress_source.h"

namespace disttrain {

// Asks rank 0 over gRPC. It opens a channel for each call and closes it again:
// a thousand running jobs are no thousand open connections, and the callers,
// a bounded pool of threads, bound how many there are at once.
//
// Threads and blocking: see ProgressSource.
class GrpcProgressSource : public ProgressSource {
 public:
  absl::StatusOr<v1::Progress> Get(const Job& job, int attempt,
                                   const std::string& address) override;
  absl::Status Stop(const Job& job, int attempt, const std::string& address,
                    bool save, const std::string& reason) override;
};

}  // namespace disttrain
