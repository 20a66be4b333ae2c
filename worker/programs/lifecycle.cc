// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/lifecycle.h"

#include <algorithm>

#include "fmt/format.h"
#include "worker/rendezvous/text.h"

namespace disttrain {

WorkerActions Lifecycle::On(const WorkerEvent& event, absl::Time now) {
  struct Dispatch {
    Lifecycle& self;
    absl::Time now;
    WorkerActions operator()(const ProgramReturned&) { return self.Returned(); }
    WorkerActions operator()(const ProgramThrew& e) {
      return self.Threw(e, now);
    }
    WorkerActions operator()(const PeerLost& e) { return self.Lost(e, now); }
    WorkerActions operator()(const SignalReceived& e) {
      return self.Signalled(e, now);
    }
    WorkerActions operator()(const v1::Event& e) { return self.Told(e, now); }
  };
  return std::visit(Dispatch{*this, now}, event);
}

WorkerActions Lifecycle::OnTime(absl::Time now) {
  if (!departure_.has_value()) return {};
  if (now >= departure_->leave_at) return Depart();
  if (now < departure_->cancel_at) return {};
  departure_->cancel_at = absl::InfiniteFuture();
  return {CancelCalls{departure_->ending.cause}};
}

absl::Time Lifecycle::deadline() const {
  if (!departure_.has_value()) return absl::InfiniteFuture();
  return std::min(departure_->cancel_at, departure_->leave_at);
}

std::optional<Lifecycle::Plan> Lifecycle::plan() const {
  if (!departure_.has_value()) return std::nullopt;
  return Plan{departure_->ending, departure_->leave_at};
}

WorkerActions Lifecycle::Returned() {
  if (departure_.has_value()) return Depart();
  return {TellFinish{"the program has ended"}, Leave{}};
}

WorkerActions Lifecycle::Threw(const ProgramThrew& error, absl::Time now) {
  // What a program throws while it is being stopped follows from that.
  if (departure_.has_value()) return Depart();
  if (error.broken_off) {
    Departure& departure = departure_.emplace();
    departure.ending.code = error.code;
    departure.ending.cause = error.cause;
    departure.unwound = true;
    departure.leave_at = now + kMoment;
    return {};
  }
  v1::Failure failure;
  failure.set_cause(error.cause);
  Ending ending;
  ending.code = error.code;
  ending.cause = error.cause;
  if (error.peer_lost) {
    ending.code = ExitCode::kPeerLost;
    ending.failed_rank = error.lost_rank;
    failure.set_rank(error.lost_rank.value_or(options_.rank));
  } else {
    failure.set_rank(options_.rank);
    failure.set_exit_code(static_cast<int>(error.code));
  }
  return {TellFailure{failure}, Leave{ending}};
}

WorkerActions Lifecycle::Lost(const PeerLost& lost, absl::Time now) {
  if (departure_.has_value() || options_.replaceable.count(lost.rank) > 0) {
    return {};
  }
  v1::Failure failure;
  failure.set_rank(lost.rank);
  failure.set_cause(lost.reason);
  WorkerActions actions = Failed(failure, now);
  if (options_.replaceable.count(options_.rank) == 0) {
    actions.insert(actions.begin(), TellFailure{failure});
  }
  return actions;
}

WorkerActions Lifecycle::Signalled(const SignalReceived& signal,
                                   absl::Time now) {
  if (departure_.has_value()) return {};
  Departure& departure = departure_.emplace();
  departure.ending.code = ExitCode::kPeerLost;
  departure.ending.cause = fmt::format("told to stop by {}", signal.name);
  if (options_.driver) departure.cancel_at = now + kMoment;
  departure.leave_at = now + (options_.driver ? kGrace : kMoment);
  return {RequestStop{}};
}

WorkerActions Lifecycle::Told(const v1::Event& event, absl::Time now) {
  switch (event.kind_case()) {
    case v1::Event::kFailure:
      return Failed(event.failure(), now);
    case v1::Event::kStop:
      return Stopped(event.stop(), now);
    case v1::Event::kFinish:
      return Finished(event.finish(), now);
    case v1::Event::kLost:
      if (event.lost().rank() == options_.rank) return {};
      return {DropPeer{event.lost()}};
    case v1::Event::kJoined:
      // A rank that came back hears of itself, too.
      if (event.joined().rank() == options_.rank) return {};
      return {ReplacePeer{event.joined()}};
    default:
      return {};
  }
}

WorkerActions Lifecycle::Failed(const v1::Failure& failure, absl::Time now) {
  const bool unwound = departure_.has_value() && departure_->unwound;
  if (!departure_.has_value() || unwound) {
    Ending& ending = departure_.emplace().ending;
    ending.code = ExitCode::kPeerLost;
    ending.cause = Describe(failure);
    ending.failed_rank = failure.rank();
  }
  departure_->whole_job = true;
  departure_->cancel_at = absl::InfiniteFuture();
  departure_->leave_at = std::min(departure_->leave_at, now + kUnwind);
  WorkerActions actions = {RequestStop{}, CancelCalls{Describe(failure)}};
  if (!options_.driver || unwound)
    actions.emplace_back(Leave{departure_->ending});
  return actions;
}

WorkerActions Lifecycle::Stopped(const v1::StopRequest& stop, absl::Time now) {
  if (departure_.has_value()) return {};
  const absl::Duration grace =
      stop.grace_ms() > 0 ? absl::Milliseconds(stop.grace_ms()) : kStopGrace;
  Departure& departure = departure_.emplace();
  departure.ending.code = ExitCode::kPeerLost;
  departure.ending.cause = fmt::format("told to stop: {}", stop.reason());
  departure.whole_job = true;
  departure.cancel_at = now + grace - std::min(kMoment, grace / 2);
  departure.leave_at = now + grace;
  return {RequestStop{}};
}

WorkerActions Lifecycle::Finished(const v1::Finish& finish, absl::Time now) {
  if (!options_.driver) {
    return {Leave{departure_.has_value() ? departure_->ending : Ending{}}};
  }
  if (departure_.has_value()) return {};
  Departure& departure = departure_.emplace();
  departure.ending.cause = finish.reason();
  departure.whole_job = true;
  departure.cancel_at = now + kMoment;
  departure.leave_at = now + kGrace;
  return {RequestStop{}};
}

WorkerActions Lifecycle::Depart() const {
  WorkerActions actions;
  if (!departure_->whole_job) {
    v1::Failure failure;
    failure.set_rank(options_.rank);
    failure.set_cause(departure_->ending.cause);
    failure.set_exit_code(static_cast<int>(departure_->ending.code));
    actions.emplace_back(TellFailure{failure});
  } else if (options_.driver && !departure_->ending.failed_rank.has_value()) {
    actions.emplace_back(TellFinish{departure_->ending.cause});
  }
  actions.emplace_back(Leave{departure_->ending});
  return actions;
}

}  // namespace disttrain
