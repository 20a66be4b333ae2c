// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace disttrain::transport {

// "host:port", "[v6]:port" or "unix:/path", taken apart.
struct Address {
  std::string path;  // of a Unix socket; empty: TCP
  std::string host;  // "" and "*": all addresses of this machine
  uint16_t port = 0;

  bool is_unix() const { return !path.empty(); }
  // All addresses of one family or both: to listen on, never to dial.
  bool is_wildcard() const;
  // The text again, with brackets where they are needed.
  std::string ToString() const;
};

// A socket address as the kernel takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

// Errors: INVALID_ARGUMENT: no port, port over 65535, brackets that do not
// match, a path that is relative or does not fit into a socket address.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// `address` is a Unix socket's.
SocketAddress UnixSocketAddress(const Address& address);

// The addresses that a name stands for, in the order to try them.
//
// Blocking: as long as the name servers take.
// Errors: UNAVAILABLE: the name is not known (now); INVALID_ARGUMENT.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const Address& address);

// Without asking a name server. Errors: INVALID_ARGUMENT: not a literal.
absl::StatusOr<std::vector<SocketAddress>> ResolveLiteral(
    const Address& address);

// An address of this machine by which other machines reach it: the first that
// is neither loopback nor link-local, IPv4 before IPv6; "127.0.0.1" on a
// machine that has none.
std::string HostAddress();

// The port of a bound TCP socket.
uint16_t PortOf(const SocketAddress& address);

}  // namespace disttrain::transport
