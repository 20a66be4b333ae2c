// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "disttrain/v1/progress.pb.h"

namespace grpc {
class Server;
class ServerCredentials;
}  // namespace grpc

namespace disttrain {

class Hub;

struct ServerOptions {
  // "host:port" ("[::]:29400": all interfaces, both families; port 0: the
  // kernel chooses) or "unix:/path/to.sock" (made with mode 0600).
  std::string listen;
  std::string job_uid;
  int attempt = 0;
  int world_size = 1;
  // Whose rewards count; "" without a program.
  std::string driver_role;
  // A rank that is silent so long is lost.
  absl::Duration heartbeat_timeout = absl::Seconds(30);
  // A rank whose stream broke may come back within.
  absl::Duration reconnect_grace = absl::Seconds(1);
  // Null: plain text.
  std::shared_ptr<grpc::ServerCredentials> credentials;
};

// The rendezvous service of one attempt of one job, on rank 0.
//
// Threads: thread-safe, but Shutdown is one thread's. The service runs on
// gRPC's own few threads, however many ranks there are; one more, `rdzv-timer`,
// ends what waits too long.
class RendezvousServer {
 public:
  // ALREADY_EXISTS: somebody else listens on `listen`, for instance rank 0 of
  // an attempt that has not gone yet. INVALID_ARGUMENT: no such address. A
  // socket file on which nobody listens is removed.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const ServerOptions& options);

  // Shutdown within one second.
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  // What clients dial: `listen` with the port that is really used.
  const std::string& address() const { return address_; }

  // What the controller would be told.
  v1::Progress Progress() const;

  // Lets Finish, Stop or a failure reach every rank, also one whose stream is
  // only starting; answers every waiting call, ends all streams and stops
  // listening. Rank 0 calls it before it leaves for whatever reason: the others
  // would hear of its own end only. Calling it again does nothing.
  // Blocking: until all that is done, or shortly after `deadline` at the
  // latest.
  void Shutdown(absl::Time deadline);

 private:
  class Service;
  RendezvousServer();

  std::string address_;
  std::shared_ptr<Hub> hub_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::thread timer_;
};

}  // namespace disttrain
