// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/endpoint.h"

#include <utility>

#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/transport/data_endpoint.h"
#include "worker/transport/frame.h"

namespace disttrain::transport {
namespace {

absl::Status CheckOptions(const EndpointOptions& options) {
  if (options.self.rank < 0 || options.self.incarnation < 0 ||
      options.attempt < 0) {
    return absl::InvalidArgumentError(fmt::format(
        "rank {}, incarnation {} and attempt {} must not be negative",
        options.self.rank, options.self.incarnation, options.attempt));
  }
  if (options.job_uid.size() > kMaxGreetingBytes / 2) {
    return absl::InvalidArgumentError(
        fmt::format("job uid has {} characters, at most {} fit into a hello",
                    options.job_uid.size(), kMaxGreetingBytes / 2));
  }
  if (options.limits.buffers > kMaxBuffers) {
    return absl::InvalidArgumentError(
        fmt::format("limits.buffers={} is over what a frame carries, {}",
                    options.limits.buffers, kMaxBuffers));
  }
  if (options.max_threads < 1) {
    return absl::InvalidArgumentError(
        fmt::format("max_threads={} must be at least 1", options.max_threads));
  }
  return absl::OkStatus();
}

// What others dial to reach a listener that is bound to `bound`.
std::string Advertised(Address bound, const std::string& advertise_host) {
  if (bound.is_unix()) return bound.ToString();
  if (!advertise_host.empty()) {
    bound.host = advertise_host;
  } else if (bound.is_wildcard()) {
    bound.host = HostAddress();
  }
  return bound.ToString();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Listen(
    const EndpointOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const Address address, ParseAddress(options.listen));
  ASSIGN_OR_RETURN(Listener listener, Listener::Bind(address));
  ASSIGN_OR_RETURN(std::unique_ptr<Reactor> reactor,
                   Reactor::Create(options.max_threads));
  auto endpoint = std::make_unique<DataEndpoint>(
      options, Advertised(listener.address(), options.advertise_host),
      std::move(reactor));
  RETURN_IF_ERROR(endpoint->Init(std::move(listener)));
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace disttrain::transport
