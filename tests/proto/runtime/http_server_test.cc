// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/http_server.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/runtime/raw_client.h"

namespace disttrain {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr char kGetAndClose[] =
    "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

std::unique_ptr<HttpServer> StartServer(HttpOptions options = {}) {
  auto server = HttpServer::Start(options);
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    return nullptr;
  }
  (*server)->Route("/hello", [](const HttpRequest& request) {
    return HttpResponse{.body = "hello" + request.query};
  });
  return std::move(*server);
}

std::string Exchange(const HttpServer& server, const std::string& request) {
  RawClient client(server.port());
  client.Send(request);
  return client.ReadAll();
}

TEST(HttpServer, AnswersGet) {
  const auto server = StartServer();
  const std::string answer = Exchange(*server, kGetAndClose);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello"));
}

TEST(HttpServer, AnswersHeadWithoutTheBody) {
  const auto server = StartServer();
  const std::string answer = Exchange(
      *server, "HEAD /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpServer, HandsTheQueryOn) {
  const auto server = StartServer();
  EXPECT_THAT(Exchange(*server, "GET /hello?a=1&b HTTP/1.0\r\n\r\n"),
              EndsWith("\r\n\r\nhelloa=1&b"));
  EXPECT_THAT(Exchange(*server, "GET http://x/hello?q HTTP/1.0\r\n\r\n"),
              EndsWith("\r\n\r\nhelloq"));
}

TEST(HttpServer, RefusesByStatus) {
  const auto server = StartServer();
  const auto status = [&server](const std::string& request) {
    return Exchange(*server, request).substr(0, 12);
  };
  EXPECT_EQ(status("GET /other HTTP/1.0\r\n\r\n"), "HTTP/1.1 404");
  EXPECT_EQ(status("GET hello HTTP/1.0\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET /hello HTTP/1.1\r\n\r\n"), "HTTP/1.1 400");  // no Host
  EXPECT_EQ(status("GET /hello HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"),
            "HTTP/1.1 413");
  EXPECT_EQ(status("GET /hello HTTP/1.1\r\nHost: x\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(status("GET /hello HTTP/1.0\r\nContent-Length: "
                   "99999999999999999\r\n\r\n"),
            "HTTP/1.1 413");
  const std::string answer = Exchange(*server,
                                      "POST /hello HTTP/1.1\r\nHost: x\r\n"
                                      "Content-Length: 5\r\n\r\nhello");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
}

TEST(HttpServer, RefusesGarbage) {
  const auto server = StartServer();
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        std::string("GET /hello\r\n\r\n"), std::string(100, '\0'),
        std::string("GET /hello HTTP/9.9\r\n\r\n"),
        std::string("GET /hello HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("GET /hello HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        std::string("GET /hello HTTP/1.1\r\nContent-Length: 1\r\n"
                    "Content-Length: 2\r\n\r\n")}) {
    RawClient client(server->port());
    client.Send(garbage);
    client.FinishSending();
    const std::string answer = client.ReadAll();
    EXPECT_FALSE(client.timed_out());
    if (!answer.empty()) {
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 ")) << garbage;
    }
  }
  EXPECT_THAT(Exchange(*server, kGetAndClose), EndsWith("hello"));
}

TEST(HttpServer, RefusesHeadersOverTheLimit) {
  const auto server = StartServer({.max_header_bytes = 1024});
  EXPECT_THAT(
      Exchange(*server, fmt::format("GET /hello HTTP/1.0\r\nX: {}\r\n\r\n",
                                    std::string(900, 'x'))),
      StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(
      Exchange(*server, fmt::format("GET /hello HTTP/1.0\r\nX: {}\r\n\r\n",
                                    std::string(1100, 'x'))),
      StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Exchange(*server, "GET /" + std::string(200000, 'x')),
              StartsWith("HTTP/1.1 431 "));
}

TEST(HttpServer, KeepsTheConnection) {
  const auto server = StartServer();
  RawClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_THAT(client.ReadUntil("\r\n\r\nhello"),
                HasSubstr("Connection: keep-alive\r\n"));
  }
  client.Send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), HasSubstr("Connection: close\r\n"));
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  const auto server = StartServer();
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests += fmt::format("GET /hello?<{}> HTTP/1.1\r\nHost: x\r\n\r\n", i);
  }
  const std::string answer = Exchange(*server, requests + kGetAndClose);
  size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    const size_t found = answer.find(fmt::format("hello<{}>", i), at);
    ASSERT_NE(found, std::string::npos) << i;
    at = found;
  }
}

TEST(HttpServer, AcceptsARequestInPieces) {
  const auto server = StartServer();
  RawClient client(server->port());
  for (const char c : std::string(kGetAndClose)) {
    ASSERT_TRUE(client.Send({&c, 1}));
  }
  EXPECT_THAT(client.ReadAll(), EndsWith("hello"));
}

TEST(HttpServer, ClosesSlowClientsAndServesOthersMeanwhile) {
  const auto server = StartServer({.header_timeout = absl::Milliseconds(300)});
  RawClient silent(server->port());
  RawClient slow(server->port());
  slow.Send("GET /hello HT");
  EXPECT_THAT(Exchange(*server, kGetAndClose), EndsWith("hello"));
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_FALSE(slow.timed_out());
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_FALSE(silent.timed_out());
}

TEST(HttpServer, DrippingBytesDoNotProlongTheTime) {
  const auto server = StartServer({.header_timeout = absl::Milliseconds(300)});
  RawClient client(server->port());
  client.Send("GET /hello HTTP/1.1\r\n");
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  bool closed = false;
  while (!closed && absl::Now() < give_up) {
    // The pace of the client is what is tested here.
    absl::SleepFor(absl::Milliseconds(20));
    closed = !client.Send("X");
  }
  EXPECT_TRUE(closed);
}

TEST(HttpServer, ClosesIdleConnections) {
  const auto server = StartServer({.idle_timeout = absl::Milliseconds(200)});
  RawClient client(server->port());
  client.Send(kGet);
  EXPECT_THAT(client.ReadAll(), EndsWith("hello"));
  EXPECT_FALSE(client.timed_out());
}

TEST(HttpServer, GivesUpAClientThatDoesNotRead) {
  const auto server = StartServer(
      {.max_connections = 1, .write_timeout = absl::Milliseconds(300)});
  server->Route("/big", [](const HttpRequest&) {
    return HttpResponse{.body = std::string(64 << 20, 'x')};
  });
  RawClient client(server->port());
  client.Send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
  // Once it is given up there is room for another.
  std::string answer;
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (answer.find("200 OK") == std::string::npos && absl::Now() < give_up) {
    answer = Exchange(*server, kGetAndClose);
  }
  EXPECT_THAT(answer, EndsWith("hello"));
}

TEST(HttpServer, BoundsItsConnections) {
  const auto server = StartServer({.max_connections = 2});
  RawClient first(server->port());
  auto second = std::make_unique<RawClient>(server->port());
  for (RawClient* client : {&first, second.get()}) {
    client->Send(kGet);
    EXPECT_THAT(client->ReadUntil("hello"), HasSubstr("200 OK"));
  }
  RawClient third(server->port());
  EXPECT_THAT(third.ReadAll(), StartsWith("HTTP/1.1 503 "));
  first.Send(kGet);
  EXPECT_THAT(first.ReadUntil("hello"), HasSubstr("200 OK"));
  // A place that is given back is used again.
  second.reset();
  std::string answer;
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (answer.find("200 OK") == std::string::npos && absl::Now() < give_up) {
    answer = Exchange(*server, kGetAndClose);
  }
  EXPECT_THAT(answer, EndsWith("hello"));
}

TEST(HttpServer, SurvivesAHandlerThatThrows) {
  std::string lines;
  const auto server = StartServer(
      {.log =
           Log({.sink = [&lines](std::string_view line) { lines += line; }})});
  server->Route("/throws", [](const HttpRequest&) -> HttpResponse {
    throw std::runtime_error("no luck");
  });
  server->Route("/worse", [](const HttpRequest&) -> HttpResponse { throw 7; });
  const std::string answer = Exchange(*server, "GET /throws HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answer, Not(HasSubstr("no luck")));
  EXPECT_THAT(Exchange(*server, "GET /worse HTTP/1.0\r\n\r\n"),
              StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(lines, HasSubstr("no luck"));
  EXPECT_THAT(Exchange(*server, kGetAndClose), EndsWith("hello"));
}

TEST(HttpServer, ServesBothFamilies) {
  const auto server = StartServer();
  RawClient v4(server->port(), AF_INET);
  v4.Send(kGetAndClose);
  EXPECT_THAT(v4.ReadAll(), EndsWith("hello"));
  RawClient v6(server->port(), AF_INET6);
  if (!v6.connected()) GTEST_SKIP() << "this machine has no IPv6";
  v6.Send(kGetAndClose);
  EXPECT_THAT(v6.ReadAll(), EndsWith("hello"));
}

TEST(HttpServer, ListensOnOneAddressOnly) {
  const auto server = StartServer({.address = "127.0.0.1"});
  EXPECT_THAT(Exchange(*server, kGetAndClose), EndsWith("hello"));
  EXPECT_FALSE(RawClient(server->port(), AF_INET6).connected());
}

TEST(HttpServer, NamesThePortThatIsInUse) {
  const auto first = StartServer();
  const auto second = HttpServer::Start({.port = first->port()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(second.status().message(),
            fmt::format("port {0} is in use (listening on [::]:{0}): end the "
                        "other process, or choose another port (0: the kernel "
                        "chooses)",
                        first->port()));
}

TEST(HttpServer, RefusesWrongOptions) {
  EXPECT_EQ(HttpServer::Start({.address = "localhost"}).status().message(),
            "\"localhost\" is not a literal IPv4 or IPv6 address");
  EXPECT_EQ(HttpServer::Start({.port = 65536}).status().message(),
            "port 65536 is outside [0, 65535]");
  EXPECT_EQ(HttpServer::Start({.address = "192.0.2.1"}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(HttpServer::Start({.max_connections = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HttpServer, ItsDescriptorsAreClosedOnExec) {
  const auto server = StartServer();
  RawClient client(server->port());
  client.Send(kGet);
  client.ReadUntil("hello");
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (error || target.string().find("socket:") == std::string::npos) continue;
    EXPECT_TRUE((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) << fd << target;
  }
}

TEST(HttpServer, StopsInSpiteOfOpenConnections) {
  auto server = StartServer();
  RawClient idle(server->port());
  RawClient half(server->port());
  half.Send("GET /hel");
  RawClient kept(server->port());
  kept.Send(kGet);
  kept.ReadUntil("hello");
  const int port = server->port();
  server.reset();
  EXPECT_EQ(kept.ReadAll(), "");
  EXPECT_FALSE(kept.timed_out());
  // The port is free again at once.
  EXPECT_NE(StartServer({.port = port}), nullptr);
}

TEST(HttpServer, RunsHandlersOnTheThreadHttp) {
  const auto server = StartServer();
  server->Route("/thread", [](const HttpRequest&) {
    char name[16] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    return HttpResponse{.body = name};
  });
  EXPECT_THAT(Exchange(*server, "GET /thread HTTP/1.0\r\n\r\n"),
              EndsWith("\r\n\r\nhttp"));
}

TEST(HttpServer, ServesManyClientsAtOnce) {
  const auto server = StartServer();
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&server] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(Exchange(*server, kGetAndClose), EndsWith("hello"));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// Takes all descriptors of the process, and gives them back.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 64;
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) fds_.push_back(fd);
  }
  ~NoDescriptors() {
    for (const int fd : fds_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  void GiveOneBack() {
    ::close(fds_.back());
    fds_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> fds_;
};

TEST(HttpServer, OutlivesALackOfDescriptors) {
  const auto server = StartServer();
  std::unique_ptr<RawClient> client;
  {
    NoDescriptors none;
    none.GiveOneBack();
    // The kernel connects it; the server has no descriptor to accept it with.
    client = std::make_unique<RawClient>(server->port());
    ASSERT_TRUE(client->connected());
    client->Send(kGetAndClose);
  }
  EXPECT_THAT(client->ReadAll(), EndsWith("hello"));
}

}  // namespace
}  // namespace disttrain
