// SPDX-License-Identifier: Apache-2.0
// The part of a worker's life that ends it.
#include <string.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/programs/worker_process.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

// A process that leaves in good order does so within.
constexpr absl::Duration kLeaveTogether = absl::Seconds(10);
// Rank 0 stays so long at most to let the others hear of a failure.
constexpr absl::Duration kLeaveAlone = absl::Milliseconds(500);
// Writing out what the program has printed may not take longer.
constexpr absl::Duration kFlush = absl::Seconds(1);

}  // namespace

Ending WorkerProcess::Explained(Ending ending) {
  const std::optional<v1::Failure> first = session_.client().failure();
  if (ending.failed_rank.has_value() && first.has_value()) {
    ending.cause = Describe(*first);
    ending.failed_rank = first->rank();
  }
  return ending;
}

void WorkerProcess::End(const Ending& ending) {
  if (ending.code == ExitCode::kDone) return LeaveTogether();
  exit_timer_.Arm(absl::Now() + kFlush);
  std::fflush(nullptr);
  LeaveAtOnce(ending);
}

void WorkerProcess::LeaveTogether() {
  finished_ = true;
  // The controller may not poll again: what the job came to is left behind.
  if (identity_.rank == driver_rank_) LeaveMessage({.code = ExitCode::kDone});
  const absl::Time deadline = absl::Now() + kLeaveTogether;
  exit_timer_.Arm(deadline + kFlush);
  if (train_.joinable()) train_.join();
  if (pages_ != nullptr) pages_->SetSource({});
  const bool clean = agent_->Shutdown(deadline);
  const absl::Status status = session_.LeaveTogether(deadline);
  if (!status.ok()) {
    log_.Warn("not all ranks left together", {{"status", Message(status)}});
  }
  log_.Info("done", {{"step", progress_.Snapshot().step()}});
  if (clean) return;
  log_.Warn("a remote method does not return; its thread is left behind");
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(ExitCode::kDone));
}

void WorkerProcess::LeaveMessage(const Ending& ending) {
  const v1::Report last = progress_.Snapshot();
  LeavingRank rank = {.path = identity_.termination_message_path,
                      .rank = identity_.rank,
                      .role = identity_.role,
                      .step = last.step()};
  if (identity_.rank == driver_rank_) rank.figures = last;
  const absl::Status written = WriteTerminationMessage(rank, ending);
  if (!written.ok()) log_.Error("no termination message", written);
}

void WorkerProcess::LeaveAtOnce(const Ending& ending) {
  // Two threads may come to this at once: the first one's ending counts.
  int code = kNotLeaving;
  if (!leaving_code_.compare_exchange_strong(code,
                                             static_cast<int>(ending.code))) {
    std::_Exit(code);
  }
  const int64_t step = progress_.Snapshot().step();
  LogFields fields = {{"reason", ending.cause},
                      {"exit_code", static_cast<int>(ending.code)},
                      {"step", step}};
  if (ending.failed_rank)
    fields.emplace_back("failed_rank", *ending.failed_rank);
  log_.Error("leaving", fields);
  LeaveMessage(ending);
  session_.LeaveAlone(absl::Now() + kLeaveAlone);
  // Not exit(): user code may still be running, and may never return.
  std::_Exit(static_cast<int>(ending.code));
}

void WorkerProcess::OnSignal(int number) {
  const std::string name = fmt::format("SIG{}", sigabbrev_np(number));
  if (signals_taken_.fetch_add(1) > 0) ExpireStop();
  log_.Info("told to stop", {{"reason", name}});
  if (set_up_.load()) return events_.Push(SignalReceived{name});
  exit_timer_.Arm(absl::Now() + Lifecycle::kGrace);
  session_.Cancel(fmt::format("told to stop by {}", name));
}

// Runs when the deciding thread has not ended the process in time, and on a
// second signal.
void WorkerProcess::ExpireStop() {
  if (finished_.load()) {
    log_.Warn("the end in good order takes too long; leaving");
    std::_Exit(static_cast<int>(ExitCode::kDone));
  }
  Ending ending = {.code = ExitCode::kPeerLost, .cause = "told to stop"};
  {
    absl::MutexLock lock(&mu_);
    if (planned_.has_value()) ending = *planned_;
  }
  LeaveAtOnce(ending);
}

}  // namespace disttrain
