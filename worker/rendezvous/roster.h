// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "disttrain/v1/progress.pb.h"
#include "disttrain/v1/rendezvous.pb.h"

namespace disttrain {

struct RosterOptions {
  std::string job_uid;
  int attempt = 0;
  // >= 1.
  int world_size = 1;
  // Whose rewards count; "" without a program.
  std::string driver_role;
  // A joined rank that is silent so long is lost.
  absl::Duration heartbeat_timeout = absl::Seconds(30);
  // A rank has to start its heartbeats within, once the roster is complete.
  absl::Duration start_grace = absl::Seconds(10);
  // A rank whose stream broke may come back within.
  absl::Duration reconnect_grace = absl::Seconds(1);
  // How long the report of a lost peer waits for the peer's own report.
  absl::Duration echo_hold = absl::Milliseconds(300);
};

// Who takes part in one attempt of one job, who is missing, who was lost, and
// how the attempt ended: the decisions of the rendezvous, without any I/O.
//
// Threads: thread-compatible. Tells no time: every method that needs it takes
// `now`, and Advance is to be called at NextDeadline().
class Roster {
 public:
  explicit Roster(RosterOptions options);

  // A rank enters, or the same process asks again, which changes nothing.
  // FAILED_PRECONDITION: another job, another world size, a role's place that
  //   another rank has, a higher incarnation of a rank that cannot be replaced.
  // ABORTED: an older attempt or incarnation, or the attempt has ended.
  // UNAVAILABLE: a newer attempt (its rank 0 is still to come), or a failure
  //   was broadcast.
  // ALREADY_EXISTS: another, live process has the rank.
  // INVALID_ARGUMENT: the request contradicts itself, or passes a limit.
  absl::Status Join(const v1::JoinRequest& request, absl::Time now);

  // The process gave up its Join, or died in it: its place is free again.
  void AbandonJoin(const v1::Caller& caller, absl::Time now);

  // OK if the caller is a rank that has joined and was not lost; the errors of
  // Join if not. A failure that was broadcast is no error here, except to a
  // rank that was lost.
  absl::Status Check(const v1::Caller& caller) const;

  // OK if `job_uid` and `attempt` are ours; for callers that are no ranks.
  absl::Status CheckJob(const std::string& job_uid, int attempt) const;

  // The heartbeats of a rank that Check accepts. `stream` is any non-zero
  // number; the end of a stream that another one has replaced means nothing.
  void StreamStarted(int rank, uint64_t stream, absl::Time now);
  void StreamEnded(int rank, uint64_t stream, absl::Time now);
  void Heard(int rank, const v1::HeartbeatRequest& request, absl::Time now);

  // A failure as a rank that Check accepts reports it. A report about the
  // caller itself counts at once, a report about another rank after
  // `echo_hold`, unless that rank's own comes first. Of a replaceable rank a
  // report about itself says that it is lost, and one about another counts for
  // nothing: its own connection may be what broke.
  // INVALID_ARGUMENT: failure.rank is no rank.
  absl::Status ReportFailure(const v1::Caller& caller,
                             const v1::Failure& failure, absl::Time now);

  // The program ended well, or all were told to leave. From now on ranks that
  // leave are not lost; after Finish no failure counts any more. The first call
  // counts.
  void Finish(const std::string& reason);
  void Stop(const v1::StopRequest& request);

  // Lets time pass: ranks that were silent or away for too long are lost, held
  // reports come to count.
  void Advance(absl::Time now);
  absl::Time NextDeadline() const;

  // All ranks have joined, now or once.
  bool Complete() const { return complete_; }
  // All ranks that ever joined, ascending.
  std::vector<v1::Member> Members() const;
  // True if the rank was lost or has left, and is not back.
  bool Gone(int rank) const { return At(rank).gone; }
  // True if losing the rank, which has joined once, is no failure.
  bool Replaceable(int rank) const {
    return At(rank).member && At(rank).member->replaceable();
  }
  // "1/3 ranks joined; ranks 1 (observer 0), 2 are missing".
  std::string MissingText() const;
  // "1 (observer 0)", or "1" while nothing else is known.
  std::string Name(int rank) const;

  const std::optional<v1::Failure>& failure() const { return failure_; }
  // After a failure, Finish or Stop.
  bool Ended() const { return failure_ || finish_ || stop_; }
  // Every rank that is left has a stream, so events reach it.
  bool AllHaveStreams() const;
  // True while the report of a lost peer waits for a better one.
  bool undecided() const { return held_.has_value(); }
  v1::Progress Progress() const;
  const RosterOptions& options() const { return options_; }

  // Events for every stream, since the last call.
  std::vector<v1::Event> TakeEvents();
  // Ranks that have gone since the last call.
  std::vector<int> TakeGone();
  // What a new stream must hear of the past.
  std::vector<v1::Event> CatchUp() const;

 private:
  struct Rank {
    // Of the latest process; absent before the first Join.
    std::optional<v1::Member> member;
    uint64_t process = 0;
    bool joined = false;
    bool gone = false;
    uint64_t stream = 0;  // 0: none
    absl::Time heard = absl::InfiniteFuture();
    // When a rank that has no stream, but should, is lost.
    absl::Time stream_due = absl::InfiniteFuture();
    bool streamed = false;  // it had one
    std::optional<v1::Report> report;
  };

  const Rank& At(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  Rank& At(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  absl::Status CheckCaller(const v1::Caller& caller) const;
  absl::Status CheckOpen() const;
  absl::Status CheckPlace(const v1::Member& self) const;
  absl::Status CheckSuccession(const v1::JoinRequest& request) const;
  void Lose(int rank, const std::string& cause, absl::Time now);
  void Fail(v1::Failure failure, absl::Time now);
  absl::Time LossTime(const Rank& rank) const;

  const RosterOptions options_;
  std::vector<Rank> ranks_;
  int joined_ = 0;
  bool complete_ = false;
  std::optional<v1::Failure> failure_;
  std::optional<v1::Finish> finish_;
  std::optional<v1::StopRequest> stop_;
  // The first report of a lost peer, and when it counts.
  std::optional<v1::Failure> held_;
  absl::Time held_until_ = absl::InfiniteFuture();
  std::vector<v1::Event> events_;
  std::vector<int> newly_gone_;
};

}  // namespace disttrain
