// SPDX-License-Identifier: Apache-2.0
//
// The measure of all: blocking ping-pong of the same bytes on a bare socket.
//
//   raw_socket unix|tcp
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/contender.h"

namespace disttrain::bench {
namespace {

void WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written <= 0) Die("write");
    data += written;
    size -= static_cast<size_t>(written);
  }
}

// False at the end of the stream.
bool ReadAll(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = read(fd, data, size);
    if (got < 0) Die("read");
    if (got == 0) return false;
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

sockaddr_in TcpAddress(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int Socket(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Die("socket");
  return fd;
}

void NoDelay(int fd) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    Die("TCP_NODELAY");
  }
}

template <class A>
const sockaddr* Generic(const A& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Listens; returns the socket and, for TCP, the port as text.
std::pair<int, std::string> Listen(const std::string& path) {
  const bool tcp = path.empty();
  const int fd = Socket(tcp ? AF_INET : AF_UNIX);
  sockaddr_in any = TcpAddress(0);
  const sockaddr_un file = UnixAddress(path);
  const int bound = tcp ? bind(fd, Generic(any), sizeof any)
                        : bind(fd, Generic(file), sizeof file);
  if (bound != 0 || listen(fd, 1) != 0) Die("bind");
  if (!tcp) return {fd, path};
  socklen_t size = sizeof any;
  getsockname(fd, reinterpret_cast<sockaddr*>(&any), &size);
  return {fd, std::to_string(ntohs(any.sin_port))};
}

int Connect(const std::string& address, bool tcp) {
  const int fd = Socket(tcp ? AF_INET : AF_UNIX);
  const sockaddr_un file = UnixAddress(address);
  const sockaddr_in port =
      TcpAddress(tcp ? static_cast<uint16_t>(std::stoi(address)) : uint16_t{0});
  const int connected = tcp ? connect(fd, Generic(port), sizeof port)
                            : connect(fd, Generic(file), sizeof file);
  if (connected != 0) Die("connect to " + address);
  if (tcp) NoDelay(fd);
  return fd;
}

// A connection begins with the size of its messages, so that each of them is
// one write and one read.
void Echo(const std::string& path) {
  const auto [listener, address] = Listen(path);
  Ready(address);
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) Die("accept");
    if (path.empty()) NoDelay(fd);
    uint64_t size = 0;
    ReadAll(fd, reinterpret_cast<char*>(&size), sizeof size);
    std::vector<char> buffer(size);
    while (ReadAll(fd, buffer.data(), size)) {
      WriteAll(fd, buffer.data(), size);
    }
    close(fd);
  }
}

class RawSocket final : public Contender {
 public:
  RawSocket(std::string address, bool tcp)
      : address_(std::move(address)), tcp_(tcp) {}
  ~RawSocket() override { Close(); }

  void Prepare(size_t floats) override {
    Close();
    payload_.assign(floats * sizeof(float), 1);
    fd_ = Connect(address_, tcp_);
    const uint64_t size = payload_.size();
    WriteAll(fd_, reinterpret_cast<const char*>(&size), sizeof size);
  }
  void Call() override {
    WriteAll(fd_, payload_.data(), payload_.size());
    if (!ReadAll(fd_, payload_.data(), payload_.size())) Die("end of stream");
  }

 private:
  void Close() {
    if (fd_ >= 0) close(fd_);
  }

  const std::string address_;
  const bool tcp_;
  std::vector<char> payload_;
  int fd_ = -1;
};

}  // namespace
}  // namespace disttrain::bench

int main(int argc, char** argv) {
  using namespace disttrain::bench;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--peer") {
    Echo(arguments[1] == "tcp" ? "" : arguments[1]);
  }
  const bool tcp = arguments.at(0) == "tcp";
  const PeerProcess peer({tcp ? "tcp" : SocketFolder() + "/raw.sock"});
  RawSocket contender(peer.address(), tcp);
  Serve(contender, peer.pid());
}
