// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace disttrain {

// Where a server listens or a client dials, taken apart.
struct ControlAddress {
  // Set for "unix:/path"; else host and port.
  std::string unix_path;
  std::string host;  // without brackets
  int port = 0;

  bool is_unix() const { return !unix_path.empty(); }
  // "unix:/path", "host:port" or "[v6]:port", as gRPC takes it.
  std::string Text() const;
};

// INVALID_ARGUMENT: neither "unix:/path" (absolute, <= 107 bytes) nor
// "host:port" with a port in [0, 65535].
absl::StatusOr<ControlAddress> ParseControlAddress(std::string_view text);

// Makes way for a listener on a Unix socket: removes a file on which nobody
// listens. ALREADY_EXISTS: somebody does. FAILED_PRECONDITION: the file is no
// socket. Other errors: the system's.
absl::Status PrepareUnixSocket(const std::string& path);

// OK if somebody could listen on `address` now, found out by trying it.
// ALREADY_EXISTS: it is in use. INVALID_ARGUMENT: the host has no address.
// Other errors: the system's.
absl::Status ProbeListen(const ControlAddress& address);

}  // namespace disttrain
