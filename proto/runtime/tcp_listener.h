// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace disttrain {

// A TCP socket that listens: descriptor and port.
struct TcpListener {
  int fd = -1;  // the caller's to close; non-blocking, close-on-exec
  int port = 0;
  bool ipv6 = false;
};

// Listens on `address` (a literal IPv4 or IPv6 address; "": all addresses of
// both families, IPv4 alone where IPv6 is missing); port 0: the kernel chooses.
//
// Errors: ALREADY_EXISTS (the port is in use; it is named), INVALID_ARGUMENT
// (address, port), PERMISSION_DENIED, UNAVAILABLE (the machine has no such
// address, or no descriptors).
absl::StatusOr<TcpListener> ListenTcp(const std::string& address, int port);

}  // namespace disttrain
