// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/identity/identity.h"
#include "worker/rendezvous/client.h"
#include "worker/rendezvous/server.h"
#include "worker/transport/endpoint.h"

namespace disttrain {

// This process's place in its job: the rendezvous (served here on rank 0), the
// connection to it, and the endpoint that accepts data connections.
//
// Threads: Cancel from any thread; the rest from the thread that made it.
class Session {
 public:
  // Borrows `identity`.
  explicit Session(const Identity& identity) : identity_(identity) {}
  ~Session();

  // Starts what others will dial, then waits until all ranks have met.
  // `driver_role` is whose rewards count.
  // Errors: those of RendezvousServer, Endpoint and Join, saying which.
  // Blocking: until all ranks have joined, at most until `deadline`.
  absl::Status Open(const std::string& driver_role, absl::Time deadline);

  // Ends a waiting Open.
  void Cancel(const std::string& reason);

  // The end in good order: waits until every rank is there, so that nobody
  // loses a connection that it still uses; rank 0's rendezvous ends last.
  // Blocking: until `deadline`, or shortly after.
  absl::Status LeaveTogether(absl::Time deadline);

  // The end of a failed attempt. On rank 0: lets the others hear what happened.
  void LeaveAlone(absl::Time deadline);

  // After Open: all ranks, ascending.
  const std::vector<v1::Member>& members() const { return members_; }
  RendezvousClient& client() { return *client_; }
  transport::Endpoint& endpoint() { return *endpoint_; }
  // Whether all ranks have met.
  bool joined() const { return !members_.empty(); }

 private:
  absl::Status Serve(const std::string& driver_role);
  absl::Status Listen(absl::Time deadline);
  absl::Status Connect();
  absl::Status Join(absl::Time deadline);

  const Identity& identity_;
  std::unique_ptr<RendezvousServer> server_;  // rank 0
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::vector<v1::Member> members_;
  absl::Mutex mu_;
  std::string cancelled_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RendezvousClient> client_;  // set under mu_
};

}  // namespace disttrain
