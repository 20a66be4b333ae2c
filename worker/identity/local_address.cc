// SPDX-License-Identifier: Apache-2.0
#include "worker/identity/local_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/identity/address.h"

namespace disttrain {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

absl::StatusOr<AddressList> Resolve(const HostPort& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(
      target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(fmt::format(
        "host name {} of rank 0: {}", target.host, ::gai_strerror(error)));
  }
  return AddressList(found, &::freeaddrinfo);
}

std::string Literal(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  } else {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  }
  return text;
}

// The local end that the kernel would use towards `peer`; "" if there is no
// route. Connecting a datagram socket sends nothing.
std::string LocalEnd(const addrinfo& peer) {
  const int fd = ::socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  const bool known =
      ::connect(fd, peer.ai_addr, peer.ai_addrlen) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0;
  ::close(fd);
  return known ? Literal(local) : "";
}

absl::StatusOr<std::string> LocalAddressTowards(const HostPort& target) {
  ASSIGN_OR_RETURN(const AddressList addresses, Resolve(target));
  for (const addrinfo* peer = addresses.get(); peer != nullptr;
       peer = peer->ai_next) {
    const std::string local = LocalEnd(*peer);
    if (!local.empty()) return local;
  }
  return absl::UnavailableError(
      fmt::format("no route to rank 0 at {}", target.host));
}

}  // namespace

std::string DataSocketPath(const Identity& identity) {
  const std::string path = identity.rendezvous.substr(kUnixPrefix.size());
  return fmt::format("{}/d{}-{}-{}.sock", path.substr(0, path.rfind('/')),
                     identity.rank, identity.attempt, identity.incarnation);
}

absl::StatusOr<std::string> PodHost(const Identity& identity,
                                    absl::Time deadline) {
  ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(identity.rendezvous));
  std::string host;
  RETURN_IF_ERROR(RetryUntil(deadline, Backoff{}, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(host, LocalAddressTowards(target));
    return absl::OkStatus();
  }));
  return host;
}

absl::StatusOr<std::string> DataListenAddress(const Identity& identity,
                                              absl::Time deadline) {
  if (UsesUnixSockets(identity)) {
    return std::string(kUnixPrefix) + DataSocketPath(identity);
  }
  ASSIGN_OR_RETURN(const std::string host, PodHost(identity, deadline));
  return JoinHostPort(host, 0);
}

}  // namespace disttrain
