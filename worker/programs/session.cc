// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/session.h"

#include <utility>

#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/runtime/status.h"
#include "worker/identity/address.h"

namespace disttrain {
namespace {

// What rank 0 binds: its socket's path, or its port on all interfaces, since
// its name may be one that only others resolve.
absl::StatusOr<std::string> ServerAddress(const Identity& identity) {
  if (UsesUnixSockets(identity)) return identity.rendezvous;
  ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(identity.rendezvous));
  return fmt::format("[::]:{}", address.port);
}

}  // namespace

Session::~Session() = default;

absl::Status Session::Open(const std::string& driver_role,
                           absl::Time deadline) {
  if (identity_.rank == 0) RETURN_IF_ERROR(Serve(driver_role));
  RETURN_IF_ERROR(Listen(deadline));
  RETURN_IF_ERROR(Connect());
  return Join(deadline);
}

absl::Status Session::Serve(const std::string& driver_role) {
  ServerOptions options;
  ASSIGN_OR_RETURN(options.listen, ServerAddress(identity_));
  options.job_uid = identity_.job_uid;
  options.attempt = identity_.attempt;
  options.world_size = identity_.world_size;
  options.driver_role = driver_role;
  absl::StatusOr<std::unique_ptr<RendezvousServer>> server =
      RendezvousServer::Start(options);
  if (!server.ok()) {
    return Annotate(server.status(),
                    fmt::format("rendezvous ({}={})", env::kRendezvous,
                                identity_.rendezvous));
  }
  server_ = *std::move(server);
  return absl::OkStatus();
}

absl::Status Session::Listen(absl::Time deadline) {
  transport::EndpointOptions options;
  options.job_uid = identity_.job_uid;
  options.attempt = identity_.attempt;
  options.self = {.rank = identity_.rank, .incarnation = identity_.incarnation};
  ASSIGN_OR_RETURN(options.listen, DataListenAddress(identity_, deadline));
  absl::StatusOr<std::unique_ptr<transport::Endpoint>> endpoint =
      transport::Endpoint::Listen(options);
  if (!endpoint.ok()) return Annotate(endpoint.status(), "data endpoint");
  endpoint_ = *std::move(endpoint);
  return absl::OkStatus();
}

absl::Status Session::Connect() {
  ClientOptions options;
  options.target = identity_.rendezvous;
  options.caller.set_job_uid(identity_.job_uid);
  options.caller.set_attempt(identity_.attempt);
  options.caller.set_rank(identity_.rank);
  options.caller.set_incarnation(identity_.incarnation);
  absl::StatusOr<std::unique_ptr<RendezvousClient>> client =
      RendezvousClient::Connect(options);
  if (!client.ok()) return client.status();
  absl::MutexLock lock(&mu_);
  client_ = *std::move(client);
  if (!cancelled_.empty()) client_->Cancel(cancelled_);
  return absl::OkStatus();
}

absl::Status Session::Join(absl::Time deadline) {
  v1::Member self;
  self.set_rank(identity_.rank);
  self.set_incarnation(identity_.incarnation);
  self.set_role(identity_.role);
  self.set_role_index(identity_.role_index);
  self.set_pod(identity_.pod);
  self.set_address(endpoint_->address());
  self.set_replaceable(identity_.replaceable);
  ASSIGN_OR_RETURN(members_,
                   client_->Join(self, identity_.world_size, deadline));
  return absl::OkStatus();
}

void Session::Cancel(const std::string& reason) {
  absl::MutexLock lock(&mu_);
  if (client_ == nullptr) {
    cancelled_ = reason;
  } else if (!joined()) {
    client_->Cancel(reason);
  }
}

absl::Status Session::LeaveTogether(absl::Time deadline) {
  const absl::Status met = client_->Barrier("disttrain/leave", {}, deadline);
  client_->StopHeartbeat();
  if (server_ != nullptr) server_->Shutdown(deadline);
  return Annotate(met, "leaving");
}

void Session::LeaveAlone(absl::Time deadline) {
  if (server_ != nullptr) server_->Shutdown(deadline);
}

}  // namespace disttrain
