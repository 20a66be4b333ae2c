// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.pb.h"
#include "worker/programs/exit.h"

namespace disttrain {

// What happens to a worker once all ranks have met.
struct ProgramReturned {};
struct ProgramThrew {
  ExitCode code = ExitCode::kException;
  std::string cause = {};
  // The exception was the loss of a peer: then that peer is the cause.
  bool peer_lost = false;
  std::optional<int> lost_rank = std::nullopt;
  // The exception was a call that was broken off, as a peer does when it hears
  // of a failure: rank 0 may be about to tell us too.
  bool broken_off = false;
};
struct PeerLost {
  int rank = 0;
  std::string reason;
};
struct SignalReceived {
  std::string name;  // "SIGTERM"
};
using WorkerEvent = std::variant<ProgramReturned, ProgramThrew, PeerLost,
                                 SignalReceived, v1::Event>;

// What is to be done about it, in order.
struct RequestStop {};  // the program sees StopRequested()
struct CancelCalls {    // pending remote calls end with rpc::Cancelled
  std::string reason;
};
struct TellFailure {  // to rank 0, which tells everybody
  v1::Failure failure;
};
struct TellFinish {
  std::string reason;
};
struct DropPeer {  // its pending calls end with rpc::PeerLost
  v1::Member member;
};
struct ReplacePeer {
  v1::Member member;
};
struct Leave {
  Ending ending;
};
using WorkerAction = std::variant<RequestStop, CancelCalls, TellFailure,
                                  TellFinish, DropPeer, ReplacePeer, Leave>;
using WorkerActions = std::vector<WorkerAction>;

// How a process will leave, once it does.
struct Departure {
  Ending ending;
  bool whole_job = false;  // others were told as well
  bool unwound = false;    // the program has ended
  absl::Time cancel_at = absl::InfiniteFuture();
  absl::Time leave_at = absl::InfiniteFuture();
};

// Decides when and how a worker leaves. Pure: no clock, no lock, no network.
//
// - The driver's program returns: everybody finishes with 0. It throws:
//   everybody is told, and this process leaves with the exception's code. If
//   it was a call that was broken off, a failure told within kMoment counts.
// - A failure of another rank (told by rank 0, or seen as a lost connection):
//   pending calls are cancelled; once the program has unwound, or after
//   kUnwind, this process leaves with 75. What a replaceable rank sees is its
//   own end alone; the loss of one is nobody's failure.
// - A signal stops this process alone: the program has kMoment to return, then
//   its calls are cancelled; after kGrace it leaves anyway, with 75.
// - A Stop from the control plane stops all: the driver may end its work within
//   the grace, then everybody leaves with 75.
class Lifecycle {
 public:
  static constexpr absl::Duration kUnwind = absl::Seconds(1);
  static constexpr absl::Duration kMoment = absl::Seconds(1);
  static constexpr absl::Duration kGrace = absl::Seconds(3);
  // If a Stop does not say.
  static constexpr absl::Duration kStopGrace = absl::Seconds(30);

  struct Options {
    int rank = 0;
    bool driver = false;  // the program runs here
    // Ranks whose loss is no failure (restart: Rank).
    std::set<int> replaceable = {};
  };
  explicit Lifecycle(Options options) : options_(std::move(options)) {}

  WorkerActions On(const WorkerEvent& event, absl::Time now);

  // To be called at deadline().
  WorkerActions OnTime(absl::Time now);
  absl::Time deadline() const;

  // How and by when this process means to leave, once it does.
  struct Plan {
    Ending ending;
    absl::Time leave_at;
  };
  std::optional<Plan> plan() const;

 private:
  WorkerActions Returned();
  WorkerActions Threw(const ProgramThrew& error, absl::Time now);
  WorkerActions Lost(const PeerLost& lost, absl::Time now);
  WorkerActions Signalled(const SignalReceived& signal, absl::Time now);
  WorkerActions Told(const v1::Event& event, absl::Time now);
  WorkerActions Failed(const v1::Failure& failure, absl::Time now);
  WorkerActions Stopped(const v1::StopRequest& stop, absl::Time now);
  WorkerActions Finished(const v1::Finish& finish, absl::Time now);
  // The last actions of a process that was told to stop.
  WorkerActions Depart() const;

  const Options options_;
  std::optional<Departure> departure_;
};

}  // namespace disttrain
