// SPDX-License-Identifier: Apache-2.0
// Who gets in, and what those who do not can do to the others.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/transport/node.h"
#include "worker/transport/frame.h"
#include "worker/transport/hello.h"
#include "worker/transport/resolver.h"
#include "worker/transport/socket.h"

namespace disttrain::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A client that says what it likes.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    const auto addresses = ResolveUntil(*ParseAddress(address), Soon(), -1);
    auto fd = disttrain::transport::Connect(addresses->front(), Soon(), -1);
    EXPECT_TRUE(fd.ok()) << fd.status();
    if (fd.ok()) fd_ = *std::move(fd);
  }

  void Write(const std::string& bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Everything until the other side closes.
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    while (true) {
      if (!Await(fd_.get(), POLLIN, Soon(), -1).ok()) return all + " timeout";
      const ssize_t count = ::recv(fd_.get(), bytes, sizeof(bytes), 0);
      if (count <= 0) return all;
      all.append(bytes, static_cast<size_t>(count));
    }
  }

 private:
  UniqueFd fd_;
};

std::string HelloFrame(const Hello& hello) {
  return EncodeFrame(FrameType::kHello, EncodeHello(hello));
}

class Fence : public ::testing::Test {
 protected:
  Fence()
      : server_(OptionsFor(0, folder_.Socket("r0"))),
        good_(OptionsFor(1, folder_.Socket("r1"))) {
    const std::vector<PeerAddress> peers = {server_.address(), good_.address()};
    server_.Start(peers);
    good_.Start(peers);
  }

  // The peer that has every right still gets through.
  void ExpectServed() {
    const int before = server_.received();
    EXPECT_TRUE(good_->Send(0, Text("x"), Soon()).ok());
    EXPECT_TRUE(server_.AwaitReceived(before + 1));
    EXPECT_EQ(server_.losses(1), 0u);
  }

  // What rank 2 or an impostor hears whose options are changed by `change`.
  std::string RefusalOf(EndpointOptions options, PeerId target = {0, 0}) {
    options.listen = folder_.Socket("other");
    Node other(options);
    other.Start({{target, server_.address().address}});
    SendToTheLost(other, 0);
    std::string reason = other.AwaitLost(0);
    EXPECT_EQ(server_.received(), 0);
    return reason;
  }

  TemporaryFolder folder_;
  Node server_;
  Node good_;
};

TEST_F(Fence, OtherJobIsRefusedNamingBoth) {
  EndpointOptions options = OptionsFor(1, "");
  options.job_uid = "job-2";
  EXPECT_THAT(RefusalOf(options),
              AllOf(HasSubstr("'job-2'"), HasSubstr("'job-1'")));
  ExpectServed();
}

TEST_F(Fence, OtherAttemptIsRefusedNamingBoth) {
  EndpointOptions options = OptionsFor(1, "");
  options.attempt = 4;
  EXPECT_THAT(RefusalOf(options),
              AllOf(HasSubstr("attempt 4"), HasSubstr("attempt 0")));
}

TEST_F(Fence, StrangerRankIsRefused) {
  EXPECT_THAT(RefusalOf(OptionsFor(2, "")),
              HasSubstr("rank 2 is no peer of rank 0"));
}

TEST_F(Fence, ZombieIsRefusedNamingBothIncarnations) {
  server_->Replace({{1, 2}, folder_.Socket("fresh")});
  EXPECT_THAT(RefusalOf(OptionsFor(1, "")),
              AllOf(HasSubstr("incarnation 0"), HasSubstr("known is 2")));
}

TEST_F(Fence, NewerIncarnationIsTakenOnceItIsKnown) {
  EndpointOptions options = OptionsFor(1, folder_.Socket("next"));
  options.self.incarnation = 1;
  Node next(options);
  next.Start({server_.address()});
  ASSERT_TRUE(next->Send(0, Text("early"), Soon()).ok());
  server_->Replace(next.address());
  EXPECT_TRUE(server_.AwaitReceived(1));
  EXPECT_EQ(next.losses(0), 0u);
}

TEST_F(Fence, DeadIncarnationOfTheTargetIsLostAtOnce) {
  EndpointOptions options = OptionsFor(1, "");
  options.connect_timeout = absl::Minutes(10);
  EndpointOptions next = OptionsFor(0, folder_.Socket("s0"));
  next.self.incarnation = 1;
  Node successor(next);
  successor.Start({good_.address()});
  options.listen = folder_.Socket("other");
  Node other(options);
  other.Start({{{0, 0}, successor.address().address}});
  SendToTheLost(other, 0);
  EXPECT_THAT(other.AwaitLost(0),
              AllOf(HasSubstr("dialled rank 0 incarnation 0"),
                    HasSubstr("reached rank 0 incarnation 1")));
}

TEST_F(Fence, OtherVersionIsRefusedNamingBoth) {
  RawClient client(server_.address().address);
  client.Write(HelloFrame({9, 0, {1, 0}, {0, 0}, "job-1"}));
  EXPECT_THAT(client.ReadAll(),
              AllOf(HasSubstr("version 9"), HasSubstr("rank 0 speaks 1")));
}

TEST_F(Fence, SecondConnectionOfAConnectedRankIsRefused) {
  ExpectServed();
  RawClient client(server_.address().address);
  client.Write(HelloFrame({1, 0, {1, 0}, {0, 0}, "job-1"}));
  EXPECT_THAT(client.ReadAll(),
              HasSubstr("rank 1 incarnation 0 has a connection"));
  ExpectServed();
}

TEST_F(Fence, GarbageHurtsNobody) {
  RawClient half(server_.address().address);
  half.Write(HelloFrame({1, 0, {1, 0}, {0, 0}, "job-1"}).substr(0, 20));
  RawClient silent(server_.address().address);
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(5000, 0),
        EncodeFrame(FrameType::kGoodbye, ""),
        EncodeFrame(FrameType::kRefuse, "xx"),
        EncodeFrame(FrameType::kHello, "short")}) {
    RawClient client(server_.address().address);
    client.Write(garbage);
    EXPECT_EQ(client.ReadAll(), "");
  }
  ExpectServed();
}

TEST_F(Fence, StrangersThatStayDoNotPileUp) {
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(std::make_unique<RawClient>(server_.address().address));
  }
  ExpectServed();
  EXPECT_EQ(strangers.front()->ReadAll(), "");  // had to make room
}

TEST_F(Fence, PeerThatBreaksTheProtocolIsLostByName) {
  RawClient client(server_.address().address);
  client.Write(HelloFrame({1, 0, {1, 0}, {0, 0}, "job-1"}) +
               EncodeFrame(FrameType::kChunk, "never begun"));
  EXPECT_EQ(server_.AwaitLost(1),
            "rank 1: frame of type 4 without its message");
  EXPECT_EQ(server_.losses(1), 1u);
}

TEST_F(Fence, MessageOverTheReceiversLimitCostsNoMemory) {
  RawClient client(server_.address().address);
  const std::vector<uint64_t> sizes = {uint64_t{1} << 60};
  client.Write(HelloFrame({1, 0, {1, 0}, {0, 0}, "job-1"}) +
               EncodeFrame(FrameType::kBegin, EncodeTable(1, sizes) + "h"));
  EXPECT_THAT(server_.AwaitLost(1), HasSubstr("over the limit"));
  EXPECT_TRUE(server_.allocated().empty());
}

TEST_F(Fence, EndWithoutGoodbyeIsALoss) {
  {
    RawClient client(server_.address().address);
    client.Write(HelloFrame({1, 0, {1, 0}, {0, 0}, "job-1"}));
  }
  EXPECT_THAT(server_.AwaitLost(1), HasSubstr("rank 1: "));
}

TEST_F(Fence, WrongTargetsAreNamed) {
  EXPECT_THAT(disttrain::Message(server_->Send(0, Text("x"), Soon())),
              HasSubstr("rank 0 is this process itself"));
  EXPECT_THAT(disttrain::Message(server_->Send(9, Text("x"), Soon())),
              HasSubstr("rank 9 is none of the 1 peers"));
}

TEST(Listening, UnixSocketIsPrivateAndGoesWithItsEndpoint) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/s";
  struct stat info {};
  {
    Node node(OptionsFor(0, "unix:" + path));
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_NE(::stat(path.c_str(), &info), 0);
}

TEST(Listening, AddressInUseIsRefusedAndADeadOnesFileReplaced) {
  TemporaryFolder folder;
  {
    Node node(OptionsFor(0, folder.Socket("s")));
    EXPECT_TRUE(absl::IsAlreadyExists(
        Endpoint::Listen(OptionsFor(1, folder.Socket("s"))).status()));
    Node tcp(OptionsFor(0, "127.0.0.1:0"));
    EXPECT_TRUE(absl::IsAlreadyExists(
        Endpoint::Listen(OptionsFor(1, tcp.address().address)).status()));
  }
  // What a killed process leaves behind.
  const SocketAddress address =
      UnixSocketAddress(*ParseAddress(folder.Socket("dead")));
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(dead.get(), address.get(), address.size), 0);
  }
  EXPECT_TRUE(Endpoint::Listen(OptionsFor(0, folder.Socket("dead"))).ok());
  std::ofstream(folder.path() + "/file") << "precious";
  EXPECT_TRUE(absl::IsAlreadyExists(
      Endpoint::Listen(OptionsFor(0, folder.Socket("file"))).status()));
}

TEST(Listening, WildcardIsPublishedAsAnAddressThatCanBeDialled) {
  for (const char* listen : {":0", "*:0", "0.0.0.0:0", "[::]:0"}) {
    Node server(OptionsFor(0, listen));
    Node client(OptionsFor(1, "127.0.0.1:0"));
    const auto address = ParseAddress(server.address().address);
    ASSERT_TRUE(address.ok());
    EXPECT_FALSE(address->is_wildcard()) << server.address().address;
    EXPECT_NE(address->port, 0);
    server.Start({client.address()});
    client.Start({server.address()});
    ASSERT_TRUE(client->Send(0, Text("x"), Soon()).ok());
    EXPECT_TRUE(server.AwaitReceived(1)) << server.address().address;
  }
  EndpointOptions options = OptionsFor(0, ":0");
  options.advertise_host = "10.1.2.3";
  EXPECT_THAT(Node(options).address().address, HasSubstr("10.1.2.3:"));
}

TEST(Listening, AddressesThatMakeNoSenseAreRefused) {
  for (const char* address :
       {"", "host", "host:", "host:x", "host:70000", "host:-1", "::1:5",
        "[::1]", "[::1", "unix:", "unix:relative", "192.0.2.1:0"}) {
    const auto endpoint = Endpoint::Listen(OptionsFor(0, address));
    EXPECT_TRUE(absl::IsInvalidArgument(endpoint.status()))
        << address << ": " << endpoint.status();
  }
  const std::string deep = "unix:/" + std::string(200, 'x');
  EXPECT_TRUE(
      absl::IsInvalidArgument(Endpoint::Listen(OptionsFor(0, deep)).status()));
}

TEST(Listening, NameIsResolvedWhenItIsDialled) {
  Node server(OptionsFor(0, "127.0.0.1:0"));
  Node client(OptionsFor(1, "127.0.0.1:0"));
  const uint16_t port = ParseAddress(server.address().address)->port;
  server.Start({client.address()});
  client.Start({{{0, 0}, "localhost:" + std::to_string(port)}});
  ASSERT_TRUE(client->Send(0, Text("x"), Soon()).ok());
  EXPECT_TRUE(server.AwaitReceived(1));
}

}  // namespace
}  // namespace disttrain::transport
