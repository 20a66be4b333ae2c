// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace disttrain {

// "host:port" taken apart. `host` has no brackets.
struct HostPort {
  std::string host;
  int port = 0;
};

// "name:port", "1.2.3.4:port" or "[v6]:port" with a port in [1, 65535].
// Errors: INVALID_ARGUMENT, which says what was expected, not what came.
absl::StatusOr<HostPort> ParseHostPort(std::string_view address);

// "host:port", with brackets around an IPv6 address.
std::string JoinHostPort(const std::string& host, int port);

// OK for what ParseHostPort takes and for "unix:/path" with an absolute path of
// at most 100 bytes that names a file.
absl::Status CheckRendezvousAddress(std::string_view address);

inline constexpr std::string_view kUnixPrefix = "unix:";

// The kernel's limit of a socket's path: sockaddr_un holds 108 bytes with the
// final zero.
inline constexpr size_t kMaxSocketPathBytes = 107;

}  // namespace disttrain
