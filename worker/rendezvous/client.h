// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "disttrain/v1/rendezvous.pb.h"

namespace grpc {
class ChannelCredentials;
}  // namespace grpc

namespace disttrain {

struct ClientOptions {
  // Where rank 0 serves: "host:port", "[v6]:port" or "unix:/path/to.sock".
  std::string target;
  // Who we are. `process` is drawn by Connect if it is 0.
  v1::Caller caller;
  // Null: plain text.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  // A broken connection to rank 0 may come back within; then rank 0 is lost.
  absl::Duration reconnect_grace = absl::Seconds(2);
  // If rank 0 is silent so long, its connection counts as broken.
  absl::Duration server_timeout = absl::Seconds(30);
};

// One rank's side of the rendezvous.
//
// Every call ends at its deadline (the answer of a stalled server is awaited
// one second longer), and at once when a failure is broadcast or rank 0 is
// lost: then with UNAVAILABLE and the text of the failure, which names its
// rank, role, pod and cause. Other errors: as rendezvous.proto says.
//
// Threads: thread-safe, but Join and StartHeartbeat are each called once, in
// this order. One thread of its own, `heartbeat`. No call needs any other
// thread of the process to make progress.
class RendezvousClient {
 public:
  // Dials nothing yet. INVALID_ARGUMENT: the target or the caller is malformed.
  static absl::StatusOr<std::unique_ptr<RendezvousClient>> Connect(
      const ClientOptions& options);

  // StopHeartbeat; ends what is pending with CANCELLED.
  ~RendezvousClient();
  RendezvousClient(const RendezvousClient&) = delete;
  RendezvousClient& operator=(const RendezvousClient&) = delete;

  // Enters the roster and gives back all members, by ascending rank. Tries
  // again while rank 0 is starting: nobody listens, or its name cannot be
  // resolved yet.
  // Blocking: until all ranks have joined.
  // DEADLINE_EXCEEDED: names the missing ranks, or says why rank 0 was not
  // reached at its address. FAILED_PRECONDITION, ABORTED, ALREADY_EXISTS: we
  // are refused; see rendezvous.proto.
  absl::StatusOr<std::vector<v1::Member>> Join(const v1::Member& self,
                                               int world_size,
                                               absl::Time deadline);

  // Starts to send `report()` every `interval`; the first one at once. Events
  // reach `on_event`; `alive` never does. Both run on the `heartbeat` thread:
  // they must not block, and must not destroy this object. Event.failure comes
  // at most once; losing rank 0 for good, and being refused by it, are such
  // events, too. After Event.finish or .stop a lost rank 0 is no event.
  void StartHeartbeat(absl::Duration interval,
                      std::function<v1::Report()> report,
                      std::function<void(const v1::Event&)> on_event);

  // Tells rank 0 that we leave in good order, and ends the thread. Before
  // Finish, Stop or a failure, this is a failure of ours in the eyes of rank 0.
  // Blocking: less than a second, and while on_event runs.
  void StopHeartbeat();

  // Reports that this rank failed, or that it lost another one
  // (failure.rank). Fields that rank 0 knows may be left empty. On OK,
  // failure() is the failure that counts: the first.
  absl::Status ReportFailure(const v1::Failure& failure);

  // Waits until all `ranks` (empty: all there are) have entered `name`.
  absl::Status Barrier(const std::string& name, const std::vector<int>& ranks,
                       absl::Time deadline);

  // The program ended well: everybody gets Event.finish.
  absl::Status Finish(const std::string& reason);

  // Everybody gets Event.stop: leave within `grace`, after a checkpoint if
  // `save`.
  absl::Status Stop(bool save, const std::string& reason, absl::Duration grace);

  // What rank 0 knows of the whole job.
  absl::StatusOr<v1::Progress> GetProgress(absl::Time deadline);

  // Key-value store; limits in key_value.h, semantics of c10d's TCPStore.
  absl::Status Set(const std::string& key, const std::string& value,
                   absl::Time deadline);
  absl::Status Append(const std::string& key, const std::string& value,
                      absl::Time deadline);
  // Blocking: until the key exists.
  absl::StatusOr<std::string> Get(const std::string& key, absl::Time deadline);
  // Blocking: until all keys exist.
  absl::Status Wait(const std::vector<std::string>& keys, absl::Time deadline);
  absl::StatusOr<bool> Check(const std::vector<std::string>& keys,
                             absl::Time deadline);
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount,
                              absl::Time deadline);
  absl::StatusOr<std::string> CompareSet(const std::string& key,
                                         const std::string& expected,
                                         const std::string& desired,
                                         absl::Time deadline);
  // True if the key existed.
  absl::StatusOr<bool> Delete(const std::string& key, absl::Time deadline);
  absl::StatusOr<int64_t> CountKeys(absl::Time deadline);

  // Ends all calls, now and in future, with CANCELLED and `reason`. For the
  // process that was told to leave while it waits in Join.
  void Cancel(const std::string& reason);

  // The failure that ended the attempt, once it is known here.
  std::optional<v1::Failure> failure() const;

  const v1::Caller& caller() const;

 private:
  class Connection;
  class HeartbeatLoop;
  explicit RendezvousClient(std::unique_ptr<Connection> connection);

  // Ends after connection_, which the loop uses.
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<HeartbeatLoop> heartbeat_;
};

}  // namespace disttrain
