// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/server.h"

#include <pthread.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/hub.h"
#include "worker/rendezvous/key_value.h"
#include "worker/rendezvous/listen_address.h"
#include "worker/rendezvous/service.h"

namespace disttrain {
namespace {

constexpr int kMaxWorldSize = 1 << 16;

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.world_size < 1 || options.world_size > kMaxWorldSize) {
    return absl::InvalidArgumentError(
        fmt::format("the world size is {}, must be in [1, {}]",
                    options.world_size, kMaxWorldSize));
  }
  if (options.attempt < 0) {
    return absl::InvalidArgumentError(
        fmt::format("the attempt is {}, must be at least 0", options.attempt));
  }
  if (options.heartbeat_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("the heartbeat timeout must be positive");
  }
  return absl::OkStatus();
}

RosterOptions RosterOptionsFrom(const ServerOptions& options) {
  RosterOptions roster;
  roster.job_uid = options.job_uid;
  roster.attempt = options.attempt;
  roster.world_size = options.world_size;
  roster.driver_role = options.driver_role;
  roster.heartbeat_timeout = options.heartbeat_timeout;
  roster.reconnect_grace = options.reconnect_grace;
  return roster;
}

void AddChannelArguments(grpc::ServerBuilder* builder) {
  // A port in use is to be an error, not to be shared.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A half-open connection is noticed within 20 s, and clients may ping as
  // often themselves.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
}

}  // namespace

RendezvousServer::RendezvousServer() = default;

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    const ServerOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(ControlAddress address, ParseControlAddress(options.listen));
  // gRPC itself does not say why it cannot listen.
  RETURN_IF_ERROR(ProbeListen(address));

  std::unique_ptr<RendezvousServer> server(new RendezvousServer);
  server->hub_ = std::make_shared<Hub>(RosterOptionsFrom(options));
  server->service_ = std::make_unique<Service>(server->hub_);
  grpc::ServerBuilder builder;
  AddChannelArguments(&builder);
  int port = 0;
  builder.AddListeningPort(address.Text(),
                           options.credentials != nullptr
                               ? options.credentials
                               : grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(server->service_.get());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    RETURN_IF_ERROR(ProbeListen(address));
    return absl::UnavailableError(
        fmt::format("gRPC cannot listen on {}", address.Text()));
  }
  if (address.is_unix()) {
    if (::chmod(address.unix_path.c_str(), S_IRUSR | S_IWUSR) != 0) {
      return absl::ErrnoToStatus(
          errno, fmt::format("setting the mode of {}", address.unix_path));
    }
  } else {
    address.port = port;
  }
  server->address_ = address.Text();
  server->timer_ = std::thread([hub = server->hub_] {
    pthread_setname_np(pthread_self(), "rdzv-timer");
    hub->RunTimer();
  });
  return server;
}

RendezvousServer::~RendezvousServer() {
  Shutdown(absl::Now() + absl::Seconds(1));
}

v1::Progress RendezvousServer::Progress() const { return hub_->Progress(); }

void RendezvousServer::Shutdown(absl::Time deadline) {
  hub_->Close(deadline);
  if (timer_.joinable()) timer_.join();
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ToChronoTime(deadline));
  server_->Wait();
}

}  // namespace disttrain
