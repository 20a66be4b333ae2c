// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "boost/asio/ip/tcp.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http/empty_body.hpp"
#include "boost/beast/http/parser.hpp"
#include "proto/runtime/http_server.h"

namespace disttrain {

// One client's connection to an HttpServer: reads a request, answers it, reads
// the next. It lives as long as it has something to wait for, kept by the
// handlers it has left with the io_context.
//
// Threads: the server's only.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Answer = std::function<HttpResponse(const HttpRequest&)>;

  // `options` and whatever `answer` uses outlive the session; `on_end` is
  // called by the destructor.
  HttpSession(boost::asio::ip::tcp::socket socket, const HttpOptions& options,
              Answer answer, std::function<void()> on_end);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  void Start();

 private:
  using ErrorCode = boost::beast::error_code;
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::empty_body>;

  void AwaitRequest();
  void ReadHeader();
  void OnHeader(const ErrorCode& error);
  void OnBadRequest(const ErrorCode& error);
  void Serve();
  void Refuse(int status, const std::string& reason,
              const std::string& header = "");
  void Write(const HttpResponse& response, const std::string& header,
             bool with_body, bool keep_alive);
  // Says that nothing more will come and swallows what the client still sends,
  // for a bounded time: closing over unread bytes would reset the connection
  // and might take the answer with it.
  void Linger();
  void Swallow();

  boost::beast::tcp_stream stream_;
  const HttpOptions& options_;
  const Answer answer_;
  const std::function<void()> on_end_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;  // of the request being read
  std::string out_;               // the response being written
  size_t swallowed_ = 0;
};

}  // namespace disttrain
