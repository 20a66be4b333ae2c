// SPDX-License-Identifier: Apache-2.0
#include "worker/identity/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>

#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

constexpr size_t kMaxUnixPathBytes = 100;
constexpr size_t kMaxHostBytes = 253;

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHostBytes &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  c == '.' || c == '-' || c == '_';
         });
}

bool IsIpv6(const std::string& host) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

absl::Status Malformed() {
  return absl::InvalidArgumentError(
      "expected \"host:port\", \"[v6]:port\" or \"unix:/path\"");
}

absl::StatusOr<int> ParsePort(std::string_view text) {
  int port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end || port < 1 || port > 65535) {
    return absl::InvalidArgumentError("expected a port in [1, 65535]");
  }
  return port;
}

absl::Status CheckUnixPath(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.back() == '/' ||
      path.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        "expected the absolute path of a file after \"unix:\"");
  }
  if (path.size() > kMaxUnixPathBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expected a path of at most {} bytes, it has {}",
                    kMaxUnixPathBytes, path.size()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return Malformed();
  HostPort parsed;
  ASSIGN_OR_RETURN(parsed.port, ParsePort(address.substr(colon + 1)));
  const std::string_view host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    parsed.host = host.substr(1, host.size() - 2);
    if (!IsIpv6(parsed.host)) return Malformed();
  } else {
    parsed.host = host;
    if (!IsHostName(host)) return Malformed();
  }
  return parsed;
}

std::string JoinHostPort(const std::string& host, int port) {
  return host.find(':') == std::string::npos
             ? fmt::format("{}:{}", host, port)
             : fmt::format("[{}]:{}", host, port);
}

absl::Status CheckRendezvousAddress(std::string_view address) {
  if (address.substr(0, kUnixPrefix.size()) == kUnixPrefix) {
    return CheckUnixPath(address.substr(kUnixPrefix.size()));
  }
  return ParseHostPort(address).status();
}

}  // namespace disttrain
