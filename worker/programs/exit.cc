// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/exit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/contract/termination_message.h"
#include "proto/runtime/signals.h"
#include "proto/runtime/status.h"

namespace disttrain {

Ending EndingFor(const absl::Status& status) {
  return {.code = ExitCodeFor(status), .cause = Message(status)};
}

absl::Status WriteTerminationMessage(const LeavingRank& rank,
                                     const Ending& ending) {
  const bool absent = access(rank.path.c_str(), F_OK) != 0;
  if (rank.path.empty() || (rank.path == env::kTerminationLog && absent)) {
    return absl::OkStatus();
  }
  TerminationMessage message = {.rank = rank.rank,
                                .role = rank.role,
                                .cause = ending.cause,
                                .step = rank.step,
                                .exit_code = static_cast<int>(ending.code),
                                .time_ms = absl::ToUnixMillis(absl::Now()),
                                .failed_rank = ending.failed_rank};
  const v1::Report& figures = rank.figures;
  if (figures.has_reward()) message.reward = figures.reward();
  if (figures.has_episode_reward()) {
    message.episode_reward = figures.episode_reward();
  }
  if (figures.has_loss()) message.loss = figures.loss();
  std::ofstream file(rank.path, std::ios::trunc);
  file << ToJson(message) << '\n';
  file.close();
  if (file.fail()) {
    return absl::UnavailableError(fmt::format(
        "{}={} cannot be written", env::kTerminationMessagePath, rank.path));
  }
  return absl::OkStatus();
}

ExitTimer::ExitTimer(std::function<void()> expire)
    : expire_(std::move(expire)) {}

ExitTimer::~ExitTimer() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void ExitTimer::Arm(absl::Time when) {
  absl::MutexLock lock(&mu_);
  when_ = std::min(when_, when);
  if (!thread_.joinable() && !stopped_)
    thread_ = std::thread([this] { Run(); });
}

void ExitTimer::Run() {
  NameThread("exit-timer");
  {
    absl::MutexLock lock(&mu_);
    while (!stopped_ && absl::Now() < when_) {
      const absl::Time waited_for = when_;
      const auto changed = [this, waited_for] {
        mu_.AssertReaderHeld();
        return stopped_ || when_ != waited_for;
      };
      mu_.AwaitWithDeadline(absl::Condition(&changed), waited_for);
    }
    if (stopped_) return;
  }
  expire_();
}

}  // namespace disttrain
