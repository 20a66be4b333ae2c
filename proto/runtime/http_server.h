// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/log.h"

namespace disttrain {

struct HttpRequest {
  std::string path;   // "/metrics", not decoded
  std::string query;  // after '?', not decoded; "" without one
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = "";
};

struct HttpOptions {
  // A literal IPv4 or IPv6 address; "": all addresses of both families (IPv4
  // alone where IPv6 is missing).
  std::string address = "";
  // 0: the kernel chooses.
  int port = 0;
  // Further connections are answered 503 and closed.
  int max_connections = 64;
  // Request line and headers together; more is answered 431.
  size_t max_header_bytes = 8 << 10;
  // From the first byte of a request (of a connection: from its start) until
  // the headers are complete; later ones are closed.
  absl::Duration header_timeout = absl::Seconds(5);
  // Without a request on a kept connection.
  absl::Duration idle_timeout = absl::Seconds(60);
  // Until the client has taken a response.
  absl::Duration write_timeout = absl::Seconds(10);
  // Where a handler's exception is told.
  Log log = Log();
};

// A small HTTP/1.1 server for /metrics, probes and debug pages: GET and HEAD,
// keep-alive, pipelining, no bodies in requests, no TLS. It trusts no client:
// every time, length and number is bounded.
//
// Threads: thread-safe. One thread, named "http", runs everything, handlers
// too: a handler must be quick and take no lock that is held while computing.
// Blocking: the destructor waits for a handler that is running, never for a
// client.
class HttpServer {
 public:
  using Request = HttpRequest;
  using Response = HttpResponse;
  // A handler that throws is answered 500 and logged; the server lives on.
  using Handler = std::function<Response(const Request&)>;

  // Binds, listens and serves. Errors: ALREADY_EXISTS (the port is in use; it
  // is named), INVALID_ARGUMENT (address, port, limits), PERMISSION_DENIED,
  // UNAVAILABLE (the machine has no such address, or no descriptors).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that clients connect to.
  int port() const;

  // Answers requests for exactly `path` from here on; replaces an earlier
  // handler of it. Other paths are answered 404.
  void Route(const std::string& path, Handler handler);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttrain
