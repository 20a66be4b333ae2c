// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/http_session.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "boost/asio/write.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/read.hpp"
#include "boost/beast/http/status.hpp"
#include "boost/beast/http/verb.hpp"
#include "fmt/format.h"

namespace disttrain {
namespace {

namespace http = boost::beast::http;

constexpr size_t kReadBytes = 4 << 10;
constexpr size_t kMaxSwallowedBytes = 1 << 20;
constexpr absl::Duration kLingerTimeout = absl::Seconds(1);

std::string_view Std(boost::string_view text) {
  return {text.data(), text.size()};
}

// Origin form "/path?query", or absolute form as a proxy would send it. Absent:
// neither.
std::optional<HttpRequest> RequestOf(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.substr(0, kScheme.size()) == kScheme) {
    const size_t slash = target.find('/', kScheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target.empty() || target.front() != '/') return std::nullopt;
  const size_t mark = target.find('?');
  HttpRequest request{.path = std::string(target.substr(0, mark)), .query = ""};
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  return request;
}

std::string Head(const HttpResponse& response, const std::string& header,
                 bool keep_alive) {
  const std::string date = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                                            absl::Now(), absl::UTCTimeZone());
  const auto reason =
      http::obsolete_reason(static_cast<http::status>(response.status));
  return fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "{}Connection: {}\r\n\r\n",
      response.status, Std(reason), date, response.content_type,
      response.body.size(), header, keep_alive ? "keep-alive" : "close");
}

}  // namespace

HttpSession::HttpSession(boost::asio::ip::tcp::socket socket,
                         const HttpOptions& options, Answer answer,
                         std::function<void()> on_end)
    : stream_(std::move(socket)),
      options_(options),
      answer_(std::move(answer)),
      on_end_(std::move(on_end)),
      buffer_(options.max_header_bytes + kReadBytes) {}

HttpSession::~HttpSession() { on_end_(); }

void HttpSession::Start() { ReadHeader(); }

void HttpSession::AwaitRequest() {
  if (buffer_.size() > 0) return ReadHeader();  // pipelined
  stream_.expires_after(absl::ToChronoNanoseconds(options_.idle_timeout));
  stream_.async_read_some(
      buffer_.prepare(kReadBytes),
      [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
        if (error) return;
        self->buffer_.commit(bytes);
        self->ReadHeader();
      });
}

void HttpSession::ReadHeader() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(options_.max_header_bytes));
  stream_.expires_after(absl::ToChronoNanoseconds(options_.header_timeout));
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](const ErrorCode& error, size_t) {
        self->OnHeader(error);
      });
}

void HttpSession::OnHeader(const ErrorCode& error) {
  if (error) return OnBadRequest(error);
  Serve();
}

void HttpSession::OnBadRequest(const ErrorCode& error) {
  if (error == http::error::header_limit ||
      error == http::error::buffer_overflow) {
    return Refuse(
        431, fmt::format("headers over {} bytes", options_.max_header_bytes));
  }
  if (error == http::error::body_limit) {
    return Refuse(413, "a request has no body here");
  }
  // Nothing came, or the client left in the middle.
  if (error == http::error::end_of_stream ||
      error == http::error::partial_message) {
    return;
  }
  if (error.category() == make_error_code(http::error::bad_method).category()) {
    Refuse(400, error.message());
  }
  // Else the time is up or the connection broken: closed by the destructor.
}

void HttpSession::Serve() {
  const auto& message = parser_->get();
  const http::verb method = message.method();
  if (method != http::verb::get && method != http::verb::head) {
    return Refuse(405, "only GET and HEAD", "Allow: GET, HEAD\r\n");
  }
  if (message.version() >= 11 && message.count(http::field::host) != 1) {
    return Refuse(400, "exactly one Host header is needed");
  }
  if (parser_->chunked() || parser_->content_length().value_or(0) > 0) {
    return Refuse(413, "a request has no body here");
  }
  const std::optional<HttpRequest> request = RequestOf(Std(message.target()));
  if (!request) return Refuse(400, "the target is no path");
  Write(answer_(*request), "", method == http::verb::get, message.keep_alive());
}

void HttpSession::Refuse(int status, const std::string& reason,
                         const std::string& header) {
  Write({.status = status, .body = reason + "\n"}, header, /*with_body=*/true,
        /*keep_alive=*/false);
}

void HttpSession::Write(const HttpResponse& response, const std::string& header,
                        bool with_body, bool keep_alive) {
  out_ = Head(response, header, keep_alive);
  if (with_body) out_ += response.body;
  stream_.expires_after(absl::ToChronoNanoseconds(options_.write_timeout));
  boost::asio::async_write(
      stream_, boost::asio::buffer(out_),
      [self = shared_from_this(), keep_alive](const ErrorCode& error, size_t) {
        if (error) return;
        if (keep_alive) {
          self->AwaitRequest();
        } else {
          self->Linger();
        }
      });
}

void HttpSession::Linger() {
  ErrorCode error;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, error);
  if (error) return;
  buffer_.consume(buffer_.size());
  stream_.expires_after(absl::ToChronoNanoseconds(kLingerTimeout));
  Swallow();
}

void HttpSession::Swallow() {
  stream_.async_read_some(
      buffer_.prepare(kReadBytes),
      [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
        self->swallowed_ += bytes;
        if (error || self->swallowed_ > kMaxSwallowedBytes) return;
        self->Swallow();
      });
}

}  // namespace disttrain
