// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/steady_timer.hpp"
#include "fmt/format.h"
#include "proto/runtime/http_session.h"
#include "proto/runtime/signals.h"
#include "proto/runtime/status.h"
#include "proto/runtime/tcp_listener.h"

namespace disttrain {
namespace {

using boost::asio::ip::tcp;

constexpr std::string_view kBusy =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
    "Retry-After: 1\r\nConnection: close\r\n\r\n";
// Between two tries to accept while the process has no descriptors left.
constexpr std::chrono::milliseconds kAcceptPause{100};

void RefuseBusy(int fd) {
  // The answer fits any socket buffer; a client that is gone misses nothing.
  (void)::send(fd, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(fd, SHUT_WR);
  ::close(fd);
}

absl::Status Check(const HttpOptions& options) {
  if (options.max_connections < 1 || options.max_header_bytes < 256 ||
      options.max_header_bytes > (1 << 20)) {
    return absl::InvalidArgumentError(fmt::format(
        "max_connections={} must be at least 1, max_header_bytes={} must lie "
        "in [256, 1048576]",
        options.max_connections, options.max_header_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, const TcpListener& listener)
      : options_(options),
        port_(listener.port),
        protocol_(listener.ipv6 ? tcp::v6() : tcp::v4()),
        acceptor_(io_, protocol_, listener.fd),
        pause_(io_) {}

  ~Impl() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void Run() {
    AwaitClient();
    thread_ = std::thread([this] {
      NameThread("http");
      io_.run();
    });
  }

  int port() const { return port_; }

  void Route(const std::string& path, Handler handler) {
    auto shared = std::make_shared<const Handler>(std::move(handler));
    const absl::MutexLock lock(&mu_);
    routes_[path] = std::move(shared);
  }

 private:
  void AwaitClient() {
    acceptor_.async_wait(tcp::acceptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (!error) AcceptAll();
                         });
  }

  void AcceptAll() {
    while (true) {
      // Not Asio's accept: its sockets are inherited by child processes.
      const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        Admit(fd);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return AwaitClient();
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                 errno == ENOMEM) {
        return Pause();
      }
      // Else this client's connection broke before it was accepted.
    }
  }

  void Pause() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const boost::system::error_code& error) {
      if (!error) AcceptAll();
    });
  }

  void Admit(int fd) {
    if (connections_ >= options_.max_connections) return RefuseBusy(fd);
    ++connections_;
    std::make_shared<HttpSession>(
        tcp::socket(io_, protocol_, fd), options_,
        [this](const Request& request) { return Answer(request); },
        [this] { --connections_; })
        ->Start();
  }

  std::shared_ptr<const Handler> Find(const std::string& path) {
    const absl::MutexLock lock(&mu_);
    const auto found = routes_.find(path);
    return found == routes_.end() ? nullptr : found->second;
  }

  Response Answer(const Request& request) {
    const std::shared_ptr<const Handler> handler = Find(request.path);
    if (!handler) return {.status = 404, .body = "no such page\n"};
    try {
      return (*handler)(request);
    } catch (const std::exception& error) {
      options_.log.Error("http handler threw",
                         {{"path", request.path}, {"reason", error.what()}});
    } catch (...) {
      options_.log.Error("http handler threw",
                         {{"path", request.path},
                          {"reason", "something that is no std::exception"}});
    }
    return {.status = 500, .body = "internal error; see the log\n"};
  }

  const HttpOptions options_;
  const int port_;
  const tcp protocol_;
  absl::Mutex mu_;
  std::map<std::string, std::shared_ptr<const Handler>> routes_
      ABSL_GUARDED_BY(mu_);
  int connections_ = 0;  // only the server's thread changes it
  // Destroyed after what uses it and before what its sessions use.
  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const HttpOptions& options) {
  RETURN_IF_ERROR(Check(options));
  ASSIGN_OR_RETURN(const TcpListener listener,
                   ListenTcp(options.address, options.port));
  auto impl = std::make_unique<Impl>(options, listener);
  impl->Run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port(); }

void HttpServer::Route(const std::string& path, Handler handler) {
  impl_->Route(path, std::move(handler));
}

}  // namespace disttrain
