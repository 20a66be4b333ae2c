// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "disttrain/v1/progress.pb.h"
#include "proto/contract/exit_code.h"

namespace disttrain {

// How and why this process leaves.
struct Ending {
  ExitCode code = ExitCode::kDone;
  // One line, for a person.
  std::string cause = {};
  // The rank whose failure makes this one leave: then this process is no root
  // cause.
  std::optional<int> failed_rank = std::nullopt;

  bool operator==(const Ending&) const = default;
};

// The ending that an error of the set-up means.
Ending EndingFor(const absl::Status& status);

// Who leaves, for the termination message.
struct LeavingRank {
  std::string path = {};  // of the termination message
  int rank = 0;
  std::string role = {};
  int64_t step = 0;
  // The driver's last figures; empty on the other ranks.
  v1::Report figures = {};
};

// Writes `ending` to the termination message's file. In an image that is not a
// pod's the default file is absent, and nothing is written.
// Errors: UNAVAILABLE, naming the file, if it cannot be written.
absl::Status WriteTerminationMessage(const LeavingRank& rank,
                                     const Ending& ending);

// Ends the process when its time is over, whatever its other threads do: user
// code that never returns must not hold up a job.
//
// Threads: thread-safe. One thread, `exit-timer`, from the first Arm on.
class ExitTimer {
 public:
  // `expire` runs on the timer's thread and is expected not to return.
  explicit ExitTimer(std::function<void()> expire);
  // Disarms.
  ~ExitTimer();
  ExitTimer(const ExitTimer&) = delete;
  ExitTimer& operator=(const ExitTimer&) = delete;

  // The earliest of all times asked for counts.
  void Arm(absl::Time when);

 private:
  void Run();

  const std::function<void()> expire_;
  absl::Mutex mu_;
  absl::Time when_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
