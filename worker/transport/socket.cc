// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain::transport {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSocketFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

absl::Status SetOption(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof(value)) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      fmt::format("setsockopt({}, {}): {}", level, option, ErrorText(errno)));
}

// Small messages leave at once; a machine that vanished is noticed within 30 s.
absl::Status SetTcpOptions(int fd) {
  RETURN_IF_ERROR(SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1));
  RETURN_IF_ERROR(SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
  RETURN_IF_ERROR(SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10));
  RETURN_IF_ERROR(SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5));
  RETURN_IF_ERROR(SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3));
  return SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

absl::Status CheckSameUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("user of the peer is unknown: {}", ErrorText(errno)));
  }
  if (peer.uid == ::geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("peer process {} belongs to user {}, expected user {}",
                  peer.pid, peer.uid, ::geteuid()));
}

absl::Status Prepare(int fd, int family) {
  return family == AF_UNIX ? CheckSameUser(fd) : SetTcpOptions(fd);
}

absl::Status ListenError(const Address& address, int error) {
  const std::string text =
      fmt::format("listening on {}: {}", address.ToString(), ErrorText(error));
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return absl::UnavailableError(text);
    default:
      return absl::InvalidArgumentError(text);
  }
}

// A socket's file whose process is dead is removed; nothing else is.
absl::Status RemoveStaleFile(const Address& address) {
  struct stat info {};
  if (::lstat(address.path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        fmt::format("{} exists and is not a socket", address.path));
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | kSocketFlags, 0));
  const SocketAddress target = UnixSocketAddress(address);
  if (::connect(probe.get(), target.get(), target.size) == 0 ||
      errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(
        fmt::format("another process listens on {}", address.ToString()));
  }
  ::unlink(address.path.c_str());
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> BindUnix(const Address& address) {
  RETURN_IF_ERROR(RemoveStaleFile(address));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | kSocketFlags, 0));
  if (!fd.valid()) return ListenError(address, errno);
  const SocketAddress target = UnixSocketAddress(address);
  // bind() makes the file with the socket's own mode: no moment with more.
  if (::fchmod(fd.get(), 0600) != 0 ||
      ::bind(fd.get(), target.get(), target.size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return ListenError(address, errno);
  }
  return fd;
}

absl::StatusOr<UniqueFd> BindTcp(const SocketAddress& target, bool both,
                                 const Address& address) {
  UniqueFd fd(::socket(target.family(), SOCK_STREAM | kSocketFlags, 0));
  if (!fd.valid()) return ListenError(address, errno);
  RETURN_IF_ERROR(SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1));
  if (target.family() == AF_INET6) {
    RETURN_IF_ERROR(
        SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, both ? 0 : 1));
  }
  if (::bind(fd.get(), target.get(), target.size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return ListenError(address, errno);
  }
  return fd;
}

absl::StatusOr<UniqueFd> BindAnyTcp(const Address& address) {
  if (address.is_wildcard() && address.host != "0.0.0.0") {
    Address any = address;
    any.host = "::";
    ASSIGN_OR_RETURN(const auto v6, ResolveLiteral(any));
    absl::StatusOr<UniqueFd> both = BindTcp(v6.front(), true, address);
    if (both.ok() || absl::IsAlreadyExists(both.status())) return both;
    any.host = "0.0.0.0";
    ASSIGN_OR_RETURN(const auto v4, ResolveLiteral(any));
    return BindTcp(v4.front(), false, address);
  }
  ASSIGN_OR_RETURN(const auto found, Resolve(address));
  return BindTcp(found.front(), false, address);
}

absl::Status ConnectError(int error) {
  const std::string text = fmt::format("connecting: {}", ErrorText(error));
  switch (error) {
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EAFNOSUPPORT:
    case EINVAL:
    case EPROTOTYPE:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

Listener::Listener(UniqueFd fd, Address address)
    : fd_(std::move(fd)), address_(std::move(address)) {
  if (address_.is_unix()) {
    struct stat info {};
    if (::lstat(address_.path.c_str(), &info) == 0) {
      device_ = info.st_dev;
      inode_ = info.st_ino;
    }
    return;
  }
  SocketAddress bound;
  bound.size = sizeof(bound.storage);
  ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&bound.storage),
                &bound.size);
  address_.port = PortOf(bound);
}

Listener::~Listener() {
  if (!fd_.valid() || !address_.is_unix()) return;
  struct stat info {};
  if (::lstat(address_.path.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    ::unlink(address_.path.c_str());
  }
}

absl::StatusOr<Listener> Listener::Bind(const Address& address) {
  absl::StatusOr<UniqueFd> fd =
      address.is_unix() ? BindUnix(address) : BindAnyTcp(address);
  if (!fd.ok()) return fd.status();
  return Listener(*std::move(fd), address);
}

absl::StatusOr<UniqueFd> Listener::Accept() {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, kSocketFlags));
  if (!fd.valid()) {
    const int error = errno;
    const std::string text = fmt::format("accept: {}", ErrorText(error));
    return error == EMFILE || error == ENFILE || error == ENOBUFS ||
                   error == ENOMEM
               ? absl::ResourceExhaustedError(text)
               : absl::UnavailableError(text);
  }
  RETURN_IF_ERROR(Prepare(fd.get(), address_.is_unix() ? AF_UNIX : AF_INET));
  return fd;
}

absl::StatusOr<UniqueFd> Connect(const SocketAddress& address,
                                 absl::Time deadline, int cancel) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | kSocketFlags, 0));
  if (!fd.valid()) return ConnectError(errno);
  if (::connect(fd.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS) return ConnectError(errno);
    RETURN_IF_ERROR(Await(fd.get(), POLLOUT, deadline, cancel));
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return ConnectError(error);
  }
  RETURN_IF_ERROR(Prepare(fd.get(), address.family()));
  return fd;
}

absl::Status Await(int fd, short events, absl::Time deadline, int cancel) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    // Rounded up, so that the last turn does not spin.
    const int64_t wait = std::clamp<int64_t>(
        absl::ToInt64Milliseconds(left + absl::Microseconds(999)), 0, 60'000);
    pollfd fds[2] = {{fd, events, 0}, {cancel, POLLIN, 0}};
    const int ready = ::poll(fds, 2, static_cast<int>(wait));
    if (ready > 0 && fds[1].revents != 0) {
      return absl::CancelledError("endpoint is closed");
    }
    if (ready > 0 && fds[0].revents != 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) {
      return absl::UnavailableError(fmt::format("poll: {}", ErrorText(errno)));
    }
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError("no answer in time");
    }
  }
}

}  // namespace disttrain::transport
