// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/tcp_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "fmt/format.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

struct Place {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string name;  // "[::1]:80", for messages

  bool ipv6() const { return storage.ss_family == AF_INET6; }
};

Place PlaceOf(const in6_addr& address, int port, const std::string& name) {
  Place place{.size = sizeof(sockaddr_in6),
              .name = fmt::format("[{}]:{}", name, port)};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = address;
  v6.sin6_port = htons(static_cast<uint16_t>(port));
  std::memcpy(&place.storage, &v6, sizeof v6);
  return place;
}

Place PlaceOf(const in_addr& address, int port, const std::string& name) {
  Place place{.size = sizeof(sockaddr_in),
              .name = fmt::format("{}:{}", name, port)};
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr = address;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  std::memcpy(&place.storage, &v4, sizeof v4);
  return place;
}

std::optional<Place> Parsed(const std::string& address, int port) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    return PlaceOf(v4, port, address);
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, address.c_str(), &v6) == 1) {
    return PlaceOf(v6, port, address);
  }
  return std::nullopt;
}

absl::Status Error(int error, const Place& place, int port) {
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(fmt::format(
          "port {} is in use (listening on {}): end the other process, or "
          "choose another port (0: the kernel chooses)",
          port, place.name));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          fmt::format("no permission to listen on {}", place.name));
    default:
      return absl::UnavailableError(
          fmt::format("listening on {}: {}", place.name, std::strerror(error)));
  }
}

bool SetOption(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

int PortOf(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return 0;
  }
  // Both families keep the port in the same place.
  sockaddr_in v4{};
  std::memcpy(&v4, &bound, sizeof v4);
  return ntohs(v4.sin_port);
}

// The descriptor; or -1 with errno set and nothing left open.
int Listen(const Place& place) {
  const int fd = ::socket(place.storage.ss_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const bool set =
      SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1) &&
      (!place.ipv6() || SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
  if (set &&
      ::bind(fd, reinterpret_cast<const sockaddr*>(&place.storage),
             place.size) == 0 &&
      ::listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

absl::StatusOr<TcpListener> ListenAt(const Place& place, int port) {
  const int fd = Listen(place);
  if (fd < 0) return Error(errno, place, port);
  return TcpListener{.fd = fd, .port = PortOf(fd), .ipv6 = place.ipv6()};
}

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& address, int port) {
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        fmt::format("port {} is outside [0, 65535]", port));
  }
  if (!address.empty()) {
    const std::optional<Place> place = Parsed(address, port);
    if (!place) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is not a literal IPv4 or IPv6 address",
                      Printable(Shortened(address, 64))));
    }
    return ListenAt(*place, port);
  }
  auto both = ListenAt(PlaceOf(in6addr_any, port, "::"), port);
  if (both.ok() || !absl::IsUnavailable(both.status())) return both;
  return ListenAt(PlaceOf(in_addr{}, port, "0.0.0.0"), port);
}

}  // namespace disttrain
