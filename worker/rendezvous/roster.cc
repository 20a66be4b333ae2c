// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/roster.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/reports.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

constexpr int kMaxMissingRanks = 32;

}  // namespace

Roster::Roster(RosterOptions options)
    : options_(std::move(options)),
      ranks_(static_cast<size_t>(options_.world_size)) {
  DISTTRAIN_CHECK(options_.world_size >= 1);
}

absl::Status Roster::Join(const v1::JoinRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckCaller(request.caller()));
  RETURN_IF_ERROR(CheckOpen());
  if (request.world_size() != options_.world_size) {
    return absl::FailedPreconditionError(fmt::format(
        "rank {} expects {} ranks, rank 0 expects {}", request.caller().rank(),
        request.world_size(), options_.world_size));
  }
  RETURN_IF_ERROR(CheckSuccession(request));
  RETURN_IF_ERROR(CheckPlace(request.self()));
  Rank& rank = At(request.caller().rank());
  const bool same = rank.joined && rank.process == request.caller().process();
  if (same) return absl::OkStatus();
  if (!rank.joined) ++joined_;
  if (rank.joined && complete_)
    events_.emplace_back().mutable_lost()->CopyFrom(*rank.member);
  rank = Rank{};
  rank.member = request.self();
  rank.process = request.caller().process();
  rank.joined = true;
  rank.heard = now;
  if (complete_) {
    rank.stream_due = now + options_.start_grace;
    events_.emplace_back().mutable_joined()->CopyFrom(*rank.member);
  } else if (joined_ == options_.world_size) {
    complete_ = true;
    for (Rank& each : ranks_) {
      each.heard = now;
      if (each.stream == 0) each.stream_due = now + options_.start_grace;
    }
  }
  return absl::OkStatus();
}

void Roster::AbandonJoin(const v1::Caller& caller, absl::Time now) {
  if (!Check(caller).ok()) return;
  Rank& rank = At(caller.rank());
  if (rank.stream != 0) return;
  if (complete_) {
    rank.stream_due = std::min(rank.stream_due, now + options_.reconnect_grace);
    return;
  }
  rank.joined = false;
  --joined_;
}

void Roster::StreamStarted(int rank, uint64_t stream, absl::Time now) {
  At(rank).stream = stream;
  At(rank).heard = now;
  At(rank).stream_due = absl::InfiniteFuture();
  At(rank).streamed = true;
}

void Roster::StreamEnded(int rank, uint64_t stream, absl::Time now) {
  if (At(rank).stream != stream) return;
  At(rank).stream = 0;
  if (At(rank).joined) At(rank).stream_due = now + options_.reconnect_grace;
}

void Roster::Heard(int number, const v1::HeartbeatRequest& request,
                   absl::Time now) {
  Rank& rank = At(number);
  rank.heard = now;
  if (request.has_report()) rank.report = request.report();
  if (request.leaving()) Lose(number, "left before the program ended", now);
}

absl::Status Roster::ReportFailure(const v1::Caller& caller,
                                   const v1::Failure& failure, absl::Time now) {
  if (failure.rank() < 0 || failure.rank() >= options_.world_size) {
    return absl::InvalidArgumentError(
        fmt::format("failure.rank is {}, must be in [0, {})", failure.rank(),
                    options_.world_size));
  }
  if (Replaceable(caller.rank())) {
    if (failure.rank() == caller.rank()) {
      Lose(caller.rank(), OneLine(failure.cause()), now);
    }
    return absl::OkStatus();
  }
  if (failure.rank() == caller.rank()) {
    // An earlier report of another rank's loss stays the first.
    if (!held_ || held_->rank() == failure.rank()) Fail(failure, now);
    return absl::OkStatus();
  }
  // Ranks that were told to leave are not lost, and a replaceable rank's loss
  // is no failure.
  const bool expected =
      Ended() || Gone(failure.rank()) || Replaceable(failure.rank());
  if (!expected && !held_) {
    held_ = failure;
    held_->clear_exit_code();
    held_until_ = now + options_.echo_hold;
  }
  return absl::OkStatus();
}

void Roster::Finish(const std::string& reason) {
  if (failure_ || finish_) return;
  held_.reset();
  held_until_ = absl::InfiniteFuture();
  finish_.emplace().set_reason(OneLine(reason));
  events_.emplace_back().mutable_finish()->CopyFrom(*finish_);
}

void Roster::Stop(const v1::StopRequest& request) {
  if (Ended()) return;
  stop_ = request;
  stop_->set_reason(OneLine(request.reason()));
  events_.emplace_back().mutable_stop()->CopyFrom(*stop_);
}

void Roster::Advance(absl::Time now) {
  if (held_ && held_until_ <= now)
    Fail(*std::exchange(held_, std::nullopt), now);
  if (!complete_) return;
  for (int number = 0; number < options_.world_size; ++number) {
    const Rank& rank = At(number);
    if (LossTime(rank) > now) continue;
    if (rank.stream_due <= now) {
      Lose(number,
           rank.streamed ? "connection lost"
                         : "it joined, but never sent a heartbeat",
           now);
    } else {
      Lose(number,
           fmt::format("no heartbeat for {}",
                       absl::FormatDuration(options_.heartbeat_timeout)),
           now);
    }
  }
}

absl::Time Roster::NextDeadline() const {
  absl::Time next = held_ ? held_until_ : absl::InfiniteFuture();
  if (!complete_) return next;
  for (const Rank& rank : ranks_) next = std::min(next, LossTime(rank));
  return next;
}

absl::Time Roster::LossTime(const Rank& rank) const {
  if (!rank.joined) return absl::InfiniteFuture();
  return std::min(rank.stream_due, rank.heard + options_.heartbeat_timeout);
}

void Roster::Lose(int number, const std::string& cause, absl::Time now) {
  Rank& rank = At(number);
  if (!rank.joined) return;
  rank.joined = false;
  rank.gone = true;
  --joined_;
  newly_gone_.push_back(number);
  if (Ended()) return;
  if (rank.member->replaceable()) {
    events_.emplace_back().mutable_lost()->CopyFrom(*rank.member);
    return;
  }
  if (held_ && held_->rank() != number) return;  // that one was first
  v1::Failure failure;
  failure.set_rank(number);
  failure.set_cause(cause);
  Fail(failure, now);
}

void Roster::Fail(v1::Failure failure, absl::Time now) {
  if (failure_ || finish_) return;
  held_.reset();
  held_until_ = absl::InfiniteFuture();
  failure.set_cause(OneLine(failure.cause()));
  failure.set_time_ms(absl::ToUnixMillis(now));
  const Rank& rank = At(failure.rank());
  if (rank.member) {
    failure.set_role(rank.member->role());
    failure.set_pod(rank.member->pod());
    failure.set_incarnation(rank.member->incarnation());
  } else {
    failure.set_role(OneLine(failure.role()));
    failure.set_pod(OneLine(failure.pod()));
  }
  if (rank.report && rank.report->has_step()) {
    failure.set_step(std::max(failure.step(), rank.report->step()));
  }
  failure_ = std::move(failure);
  events_.emplace_back().mutable_failure()->CopyFrom(*failure_);
}

bool Roster::AllHaveStreams() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return !rank.joined || rank.stream != 0;
  });
}

std::vector<v1::Member> Roster::Members() const {
  std::vector<v1::Member> members;
  for (const Rank& rank : ranks_) {
    if (rank.member) members.push_back(*rank.member);
  }
  return members;
}

std::string Roster::Name(int rank) const {
  const auto& member = At(rank).member;
  return member ? fmt::format("{} ({} {})", rank, member->role(),
                              member->role_index())
                : fmt::format("{}", rank);
}

std::string Roster::MissingText() const {
  std::vector<std::string> missing;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (!At(rank).joined) missing.push_back(Name(rank));
  }
  return fmt::format("{}/{} ranks joined; {}", joined_, options_.world_size,
                     AreMissing(missing));
}

v1::Progress Roster::Progress() const {
  v1::Progress progress;
  progress.set_state(failure_    ? v1::Progress::STATE_FAILED
                     : finish_   ? v1::Progress::STATE_FINISHED
                     : complete_ ? v1::Progress::STATE_RUNNING
                                 : v1::Progress::STATE_JOINING);
  progress.set_world_size(options_.world_size);
  progress.set_joined(joined_);
  progress.set_driver_role(options_.driver_role);
  std::vector<RankReport> reports;
  for (int number = 0; number < options_.world_size; ++number) {
    const Rank& rank = At(number);
    if (!complete_ && !rank.joined &&
        progress.missing_ranks_size() < kMaxMissingRanks) {
      progress.add_missing_ranks(number);
    }
    if (rank.report) {
      reports.push_back({number, rank.member->role(), *rank.report});
    }
  }
  *progress.mutable_training() = MergeReports(reports, options_.driver_role);
  if (failure_) *progress.mutable_failure() = *failure_;
  return progress;
}

std::vector<v1::Event> Roster::TakeEvents() {
  return std::exchange(events_, {});
}

std::vector<int> Roster::TakeGone() { return std::exchange(newly_gone_, {}); }

std::vector<v1::Event> Roster::CatchUp() const {
  std::vector<v1::Event> events;
  for (const Rank& rank : ranks_) {
    if (!complete_ || !rank.member || !rank.member->replaceable()) continue;
    if (rank.gone) {
      events.emplace_back().mutable_lost()->CopyFrom(*rank.member);
    } else if (rank.member->incarnation() > 0) {
      events.emplace_back().mutable_joined()->CopyFrom(*rank.member);
    }
  }
  if (stop_) events.emplace_back().mutable_stop()->CopyFrom(*stop_);
  if (finish_) events.emplace_back().mutable_finish()->CopyFrom(*finish_);
  if (failure_) events.emplace_back().mutable_failure()->CopyFrom(*failure_);
  return events;
}

}  // namespace disttrain
