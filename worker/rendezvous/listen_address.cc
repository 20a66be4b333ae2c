// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

class Socket {
 public:
  explicit Socket(int family)
      : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

absl::Status InUse(const std::string& text) {
  return absl::AlreadyExistsError(
      fmt::format("{} is in use: another process listens there", text));
}

absl::Status SystemError(const std::string& text, int error) {
  return absl::ErrnoToStatus(error, fmt::format("listening on {}", text));
}

}  // namespace

std::string ControlAddress::Text() const {
  if (is_unix()) return std::string(kUnixPrefix) + unix_path;
  return host.find(':') == std::string::npos
             ? fmt::format("{}:{}", host, port)
             : fmt::format("[{}]:{}", host, port);
}

absl::StatusOr<ControlAddress> ParseControlAddress(std::string_view text) {
  const auto malformed = [&](const std::string& why) {
    return absl::InvalidArgumentError(fmt::format(
        "address '{}': {}; expected host:port, [v6]:port or unix:/path", text,
        why));
  };
  ControlAddress address;
  if (text.starts_with(kUnixPrefix)) {
    address.unix_path = text.substr(kUnixPrefix.size());
    if (!address.unix_path.starts_with('/')) {
      return malformed("the path is not absolute");
    }
    constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
    if (address.unix_path.size() > kMaxPath) {
      return malformed(fmt::format("the path has {} bytes, the limit is {}",
                                   address.unix_path.size(), kMaxPath));
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed("there is no port");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return malformed("an IPv6 address needs brackets");
  }
  if (host.empty()) return malformed("there is no host");
  const std::string_view port = text.substr(colon + 1);
  const auto parsed =
      std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() ||
      address.port < 0 || address.port > 65535) {
    return malformed("the port is not a number in [0, 65535]");
  }
  address.host = host;
  return address;
}

absl::Status PrepareUnixSocket(const std::string& path) {
  const std::string text = std::string(kUnixPrefix) + path;
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : SystemError(text, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        fmt::format("{} exists and is not a socket", path));
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const Socket probe(AF_UNIX);
  if (probe.fd() < 0) return SystemError(text, errno);
  if (::connect(probe.fd(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0) {
    return InUse(text);
  }
  // EAGAIN: somebody listens whose queue is full.
  if (errno == EAGAIN) return InUse(text);
  if (errno != ECONNREFUSED) return SystemError(text, errno);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return SystemError(text, errno);
  }
  return absl::OkStatus();
}

absl::Status ProbeListen(const ControlAddress& address) {
  const std::string text = address.Text();
  if (address.is_unix()) {
    RETURN_IF_ERROR(PrepareUnixSocket(address.unix_path));
    const std::string folder =
        address.unix_path.substr(0, address.unix_path.rfind('/') + 1);
    return ::access(folder.c_str(), W_OK | X_OK) == 0
               ? absl::OkStatus()
               : SystemError(text, errno);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                    &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        fmt::format("cannot listen on {}: {}", text, ::gai_strerror(error)));
  }
  absl::Status status;
  for (const addrinfo* each = found; each != nullptr && status.ok();
       each = each->ai_next) {
    const Socket probe(each->ai_family);
    const int on = 1;
    // A kernel without IPv6 is no obstacle: gRPC then takes IPv4.
    if (probe.fd() < 0) continue;
    ::setsockopt(probe.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (::bind(probe.fd(), each->ai_addr, each->ai_addrlen) == 0) continue;
    status = errno == EADDRINUSE ? InUse(text) : SystemError(text, errno);
  }
  ::freeaddrinfo(found);
  return status;
}

}  // namespace disttrain
