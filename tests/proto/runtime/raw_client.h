// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

namespace disttrain {

// A TCP client on loopback that sends any bytes. Reads give up after 30 s.
class RawClient {
 public:
  explicit RawClient(int port, int family = AF_INET)
      : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto net_port = htons(static_cast<uint16_t>(port));
    if (family == AF_INET6) {
      sockaddr_in6 to{};
      to.sin6_family = AF_INET6;
      to.sin6_addr = in6addr_loopback;
      to.sin6_port = net_port;
      Connect(&to, sizeof to);
    } else {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      to.sin_port = net_port;
      Connect(&to, sizeof to);
    }
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  // False if the peer has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent =
          ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void FinishSending() { ::shutdown(fd_, SHUT_WR); }

  // One read; "" at the end, on a reset or after 30 s.
  std::string ReadSome() {
    std::array<char, 65536> buffer{};
    const ssize_t bytes = ::recv(fd_, buffer.data(), buffer.size(), 0);
    timed_out_ = bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return bytes > 0 ? std::string(buffer.data(), static_cast<size_t>(bytes))
                     : "";
  }

  // All until the peer closes.
  std::string ReadAll() {
    std::string all;
    for (std::string part = ReadSome(); !part.empty(); part = ReadSome()) {
      all += part;
    }
    return all;
  }

  // Until `text` has come (or the end).
  std::string ReadUntil(std::string_view text) {
    std::string all;
    while (all.find(text) == std::string::npos) {
      const std::string part = ReadSome();
      if (part.empty()) break;
      all += part;
    }
    return all;
  }

  // Whether the last read gave up instead of meeting the end.
  bool timed_out() const { return timed_out_; }

 private:
  void Connect(const void* to, socklen_t size) {
    connected_ = ::connect(fd_, static_cast<const sockaddr*>(to), size) == 0;
  }

  const int fd_;
  bool connected_ = false;
  bool timed_out_ = false;
};

}  // namespace disttrain
