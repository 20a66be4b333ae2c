// SPDX-License-Identifier: Apache-2.0
//
// How ranks meet: server and clients in one process, over real sockets.
#include <sys/stat.h>

#include <thread>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/worker/rendezvous/harness.h"

namespace disttrain::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

bool Ipv6Works() {
  auto server = RendezvousServer::Start(OptionsOf("[::1]:0", 1));
  return server.ok();
}

TEST(Rendezvous, MeetsOverAUnixSocket) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  EXPECT_EQ(world.server->address(), folder.socket());
  struct stat info = {};
  ASSERT_EQ(::stat((folder.path() + "/r.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(Eventually([&] {
    return world.server->Progress().state() == v1::Progress::STATE_RUNNING;
  }));
}

TEST(Rendezvous, MeetsOverLoopback) {
  World world = Meet(OptionsOf("127.0.0.1:0", 2));
  EXPECT_THAT(world.server->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE(world.server->address(), "127.0.0.1:0");
}

TEST(Rendezvous, MeetsOverIpv6) {
  if (!Ipv6Works()) GTEST_SKIP() << "no IPv6 here";
  World world = Meet(OptionsOf("[::1]:0", 2));
  EXPECT_THAT(world.server->address(), StartsWith("[::1]:"));
}

TEST(Rendezvous, ListensOnAllInterfaces) {
  auto server = RendezvousServer::Start(OptionsOf("[::]:0", 1));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string port =
      (*server)->address().substr((*server)->address().rfind(':'));
  Rank rank(fmt::format("127.0.0.1{}", port), 0);
  EXPECT_TRUE(rank.Join(1).ok());
}

TEST(Rendezvous, GivesTheWholeRosterInOrder) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank one(folder.socket(), 1);
  Rank zero(folder.socket(), 0);
  std::thread first([&] { EXPECT_TRUE(one.Join(2).ok()); });
  const auto members = zero.Join(2);
  first.join();
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ((*members)[0].role(), "agent");
  EXPECT_EQ((*members)[1].pod(), "pod-1");
  EXPECT_EQ((*members)[1].address(), "127.0.0.1:1001");
}

TEST(Rendezvous, NamesThePortThatIsInUse) {
  auto first = RendezvousServer::Start(OptionsOf("127.0.0.1:0", 1));
  ASSERT_TRUE(first.ok());
  const auto second =
      RendezvousServer::Start(OptionsOf((*first)->address(), 1));
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(Message(second.status()), HasSubstr((*first)->address()));
}

TEST(Rendezvous, LeavesALiveSocketAloneAndReplacesAStaleOne) {
  const Folder folder;
  {
    auto first = RendezvousServer::Start(OptionsOf(folder.socket(), 1));
    ASSERT_TRUE(first.ok());
    const auto second = RendezvousServer::Start(OptionsOf(folder.socket(), 1));
    EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
    Rank rank(folder.socket(), 0);
    EXPECT_TRUE(rank.Join(1).ok());
  }
  EXPECT_TRUE(RendezvousServer::Start(OptionsOf(folder.socket(), 1)).ok());
}

TEST(Rendezvous, RefusesAddressesThatAreNone) {
  for (const char* listen : {"", "localhost", "unix:relative", "127.0.0.1:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        RendezvousServer::Start(OptionsOf(listen, 1)).status()))
        << listen;
  }
  EXPECT_FALSE(RendezvousServer::Start(OptionsOf("192.0.2.1:0", 1)).ok());
  EXPECT_FALSE(
      RendezvousServer::Start(OptionsOf("unix:/nonexistent/dir/s", 1)).ok());
}

TEST(Rendezvous, TellsEveryoneWhoIsMissingAtTheDeadline) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 3));
  ASSERT_TRUE(server.ok());
  Rank zero(folder.socket(), 0);
  Rank two(folder.socket(), 2);
  absl::Status late;
  std::thread other([&] { late = two.Join(3).status(); });
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 1; }));
  const absl::Status status = zero.Join(3, In(300)).status();
  other.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_EQ(Message(status), "2/3 ranks joined; rank 1 is missing");
  EXPECT_EQ(late, status);
}

TEST(Rendezvous, SaysWhyRankZeroWasNotReached) {
  const Folder folder;
  Rank rank(folder.socket(), 1);
  const absl::Status status = rank.Join(2, In(300)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr(folder.socket()));
  EXPECT_THAT(Message(status), HasSubstr("No such file"));
}

TEST(Rendezvous, SaysThatANameCannotBeResolved) {
  Rank rank("no-such-host.invalid:29400", 1);
  const absl::Status status = rank.Join(2, In(500)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr("no-such-host.invalid:29400"));
}

TEST(Rendezvous, WaitsForRankZeroToStart) {
  const Folder folder;
  Rank one(folder.socket(), 1);
  absl::Status joined = absl::UnknownError("not yet");
  std::thread early([&] { joined = one.Join(2).status(); });
  // The early rank has tried in vain at least once.
  Rank probe(folder.socket(), 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(probe.Join(2, In(100)).status()));
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank zero(folder.socket(), 0);
  EXPECT_TRUE(zero.Join(2).ok());
  early.join();
  EXPECT_TRUE(joined.ok()) << joined;
}

TEST(Rendezvous, RefusesStrangersZombiesAndDuplicates) {
  const Folder folder;
  ServerOptions options = OptionsOf(folder.socket(), 2);
  options.attempt = 1;
  auto server = RendezvousServer::Start(options);
  ASSERT_TRUE(server.ok());

  ClientOptions stranger;
  stranger.target = folder.socket();
  stranger.caller = CallerOf(1, 1);
  stranger.caller.set_job_uid("uid-b");
  auto client = RendezvousClient::Connect(stranger);
  ASSERT_TRUE(client.ok());
  absl::Status status = (*client)->Join(MemberOf(1), 2, Deadline()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("uid-a"));
  EXPECT_THAT(Message(status), HasSubstr("uid-b"));

  Rank zombie(folder.socket(), 1, 0);
  EXPECT_TRUE(absl::IsAborted(zombie.Join(2).status()));
  Rank wrong_size(folder.socket(), 1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong_size.Join(3).status()));
  Rank early(folder.socket(), 1, 2);  // its rank 0 never comes
  EXPECT_TRUE(absl::IsDeadlineExceeded(early.Join(2, In(200)).status()));

  Rank zero(folder.socket(), 0, 1);
  Rank one(folder.socket(), 1, 1);
  std::thread join([&] { EXPECT_TRUE(one.Join(2).ok()); });
  EXPECT_TRUE(zero.Join(2).ok());
  join.join();
  one.Beat();
  Rank second(folder.socket(), 1, 1);
  status = second.Join(2).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("observer 0, pod pod-1"));
  EXPECT_TRUE(absl::IsAlreadyExists(second->Set("k", "v", Deadline())));
}

TEST(Rendezvous, FreesThePlaceOfARankThatGivesUpJoining) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank first(folder.socket(), 1);
  absl::Status given_up;
  std::thread join([&] { given_up = first.Join(2).status(); });
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 1; }));
  first->Cancel("told to leave");
  join.join();
  EXPECT_TRUE(absl::IsCancelled(given_up));
  EXPECT_EQ(Message(given_up), "told to leave");
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 0; }));
  Rank successor(folder.socket(), 1);
  Rank zero(folder.socket(), 0);
  std::thread again([&] { EXPECT_TRUE(successor.Join(2).ok()); });
  EXPECT_TRUE(zero.Join(2).ok());
  again.join();
}

}  // namespace
}  // namespace disttrain::testing
