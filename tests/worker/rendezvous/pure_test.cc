// SPDX-License-Identifier: Apache-2.0
//
// The small pure parts: text, key-value store, barriers, addresses.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/barriers.h"
#include "worker/rendezvous/key_value.h"
#include "worker/rendezvous/listen_address.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

TEST(Text, MakesOneLineOfValidUtf8) {
  EXPECT_EQ(OneLine("a\nb\tc\n"), "a b c");
  EXPECT_EQ(OneLine("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(OneLine("\xff\xc0\x80!"), "?\?\?!");
  EXPECT_EQ(OneLine("\xed\xa0\x80"), "?\?\?");  // a surrogate
  EXPECT_EQ(OneLine("a\xe2\x82\xac", 3), "a");  // cut before the euro sign
  EXPECT_EQ(OneLine("\xe2\x82"), "??");         // cut by somebody else
  EXPECT_EQ(OneLine(std::string(5000, 'x')).size(), kMaxLineBytes);
}

TEST(Text, NamesAFailedRankAsFarAsItIsKnown) {
  v1::Failure failure;
  failure.set_rank(2);
  failure.set_cause("connection lost");
  EXPECT_EQ(Describe(failure), "rank 2 failed: connection lost");
  failure.set_role("observer");
  failure.set_pod("cartpole-observer-1");
  EXPECT_EQ(
      Describe(failure),
      "rank 2 (observer, pod cartpole-observer-1) failed: connection lost");
}

TEST(Text, NamesAtMostThirtyTwoMissingRanks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < 40; ++rank) names.push_back(std::to_string(rank));
  EXPECT_THAT(AreMissing(names), HasSubstr("30, 31 and 8 more are missing"));
  EXPECT_EQ(AreMissing({"1 (observer 0)"}), "rank 1 (observer 0) is missing");
}

TEST(KeyValue, SetsFindsAndDeletes) {
  KeyValue store;
  EXPECT_EQ(store.Find("a"), nullptr);
  ASSERT_TRUE(store.Set("a", "1").ok());
  ASSERT_TRUE(store.Set("a", std::string("\0\xff", 2)).ok());
  EXPECT_EQ(*store.Find("a"), std::string("\0\xff", 2));
  EXPECT_EQ(store.Count(), 1);
  EXPECT_EQ(store.bytes(), 3u);
  EXPECT_TRUE(store.Delete("a"));
  EXPECT_FALSE(store.Delete("a"));
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(KeyValue, AddsDecimalText) {
  KeyValue store;
  EXPECT_EQ(*store.Add("n", 5), 5);
  EXPECT_EQ(*store.Add("n", -7), -2);
  EXPECT_EQ(*store.Find("n"), "-2");
  ASSERT_TRUE(store.Set("n", "41").ok());
  EXPECT_EQ(*store.Add("n", 1), 42);
}

TEST(KeyValue, RefusesToAddToWhatIsNoNumber) {
  KeyValue store;
  ASSERT_TRUE(store.Set("n", "4x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(store.Add("n", 1).status()));
  ASSERT_TRUE(
      store.Set("n", std::to_string(std::numeric_limits<int64_t>::max())).ok());
  EXPECT_TRUE(absl::IsOutOfRange(store.Add("n", 1).status()));
}

// The four cases of TCPStore's compareSetHandler.
TEST(KeyValue, ComparesAndSetsAsTcpStoreDoes) {
  KeyValue store;
  EXPECT_EQ(*store.CompareSet("k", "wrong", "new"), "wrong");
  EXPECT_EQ(store.Find("k"), nullptr);
  EXPECT_EQ(*store.CompareSet("k", "", "first"), "first");
  EXPECT_EQ(*store.CompareSet("k", "", "second"), "first");
  EXPECT_EQ(*store.CompareSet("k", "first", "second"), "second");
  EXPECT_EQ(*store.Find("k"), "second");
}

TEST(KeyValue, Appends) {
  KeyValue store;
  ASSERT_TRUE(store.Append("k", "ab").ok());
  ASSERT_TRUE(store.Append("k", "cd").ok());
  EXPECT_EQ(*store.Find("k"), "abcd");
}

TEST(KeyValue, HoldsItsLimits) {
  KeyValue store({.key_bytes = 4, .value_bytes = 10, .total_bytes = 20});
  EXPECT_TRUE(absl::IsInvalidArgument(store.Set("", "x")));
  EXPECT_TRUE(absl::IsInvalidArgument(store.Set("12345", "x")));
  EXPECT_TRUE(absl::IsResourceExhausted(store.Set("k", std::string(11, 'v'))));
  ASSERT_TRUE(store.Set("k", std::string(10, 'v')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store.Append("k", "v")));
  const absl::Status full = store.Set("l", std::string(10, 'v'));
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(Message(full), HasSubstr("22 bytes, the limit is 20"));
  ASSERT_TRUE(store.Set("l", std::string(8, 'v')).ok());   // exactly full
  ASSERT_TRUE(store.Set("k", std::string(10, 'w')).ok());  // replaced
}

class BarriersTest : public ::testing::Test {
 protected:
  static Barriers::Entry Entry(int rank, uint64_t ticket, int seconds = 10) {
    return {"b",  {0, 1, 2}, /*everyone=*/false,
            rank, ticket,    kStart + absl::Seconds(seconds)};
  }

  inline static const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
  Barriers barriers_{[](int rank) { return std::to_string(rank); }};
};

TEST_F(BarriersTest, OpensWhenTheLastRankEnters) {
  EXPECT_THAT(barriers_.Enter(Entry(2, 12)), IsEmpty());
  EXPECT_THAT(barriers_.Enter(Entry(0, 10)), IsEmpty());
  EXPECT_THAT(
      barriers_.Enter(Entry(1, 11)),
      ElementsAre(Pair(10, absl::OkStatus()), Pair(11, absl::OkStatus()),
                  Pair(12, absl::OkStatus())));
  // And can be used again.
  EXPECT_THAT(barriers_.Enter(Entry(2, 22)), IsEmpty());
}

TEST_F(BarriersTest, EndsForAllWhenTheFirstHasWaitedLongEnough) {
  barriers_.Enter(Entry(0, 10, 5));
  barriers_.Enter(Entry(1, 11, 9));
  EXPECT_EQ(barriers_.NextDeadline(), kStart + absl::Seconds(5));
  EXPECT_THAT(barriers_.Expire(kStart + absl::Seconds(4)), IsEmpty());
  const auto answers = barriers_.Expire(kStart + absl::Seconds(5));
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers[1].second));
  EXPECT_EQ(Message(answers[1].second),
            "barrier 'b': 2/3 ranks entered; rank 2 is missing");
  EXPECT_EQ(barriers_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(BarriersTest, EndsAtOnceWhenARankHasGone) {
  barriers_.Enter(Entry(0, 10));
  EXPECT_THAT(barriers_.RankGone(7, false), IsEmpty());
  const auto answers = barriers_.RankGone(2, /*replaceable=*/true);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].first, 10u);
  EXPECT_TRUE(absl::IsUnavailable(answers[0].second));
  EXPECT_EQ(Message(answers[0].second), "barrier 'b': rank 2 has gone");
}

TEST_F(BarriersTest, ForEveryoneWaitsForThoseThatThereAre) {
  const auto enter = [this](int rank, std::set<int> present) {
    Barriers::Entry entry = Entry(rank, static_cast<uint64_t>(10 + rank));
    entry.ranks = std::move(present);
    entry.everyone = true;
    return barriers_.Enter(entry);
  };
  EXPECT_THAT(enter(0, {0, 1, 2, 3}), IsEmpty());
  EXPECT_THAT(enter(1, {0, 1, 2, 3}), IsEmpty());
  EXPECT_THAT(barriers_.RankGone(3, /*replaceable=*/true), IsEmpty());
  barriers_.RankBack(3);
  EXPECT_THAT(enter(2, {0, 1, 2}), IsEmpty());
  EXPECT_THAT(
      barriers_.RankGone(3, /*replaceable=*/true),
      ElementsAre(Pair(10, absl::OkStatus()), Pair(11, absl::OkStatus()),
                  Pair(12, absl::OkStatus())));
  // Any other rank is waited for in vain.
  EXPECT_THAT(enter(0, {0, 1}), IsEmpty());
  const auto answers = barriers_.RankGone(1, /*replaceable=*/false);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_TRUE(absl::IsUnavailable(answers[0].second));
}

TEST_F(BarriersTest, RefusesAnotherSetOfRanks) {
  barriers_.Enter(Entry(0, 10));
  const auto answers = barriers_.Enter({"b", {0, 1}, false, 1, 11, kStart});
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_TRUE(absl::IsInvalidArgument(answers[0].second));
  const auto outside = barriers_.Enter({"c", {0, 1}, false, 2, 12, kStart});
  ASSERT_THAT(outside, SizeIs(1));
  EXPECT_TRUE(absl::IsInvalidArgument(outside[0].second));
}

TEST_F(BarriersTest, LetsARankEnterAgainAfterALostCall) {
  barriers_.Enter(Entry(0, 10));
  barriers_.Enter(Entry(1, 11));
  barriers_.Abandon(11);
  EXPECT_THAT(barriers_.Enter(Entry(2, 12)), IsEmpty());
  const auto again = barriers_.Enter(Entry(2, 22));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_TRUE(absl::IsAborted(again[0].second));
  EXPECT_THAT(barriers_.Enter(Entry(1, 21)), SizeIs(3));
}

TEST(ControlAddress, TakesHostsIpv6AndUnixSockets) {
  EXPECT_EQ(ParseControlAddress("a.b.svc:29400")->host, "a.b.svc");
  EXPECT_EQ(ParseControlAddress("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseControlAddress("[::1]:80")->Text(), "[::1]:80");
  EXPECT_EQ(ParseControlAddress("unix:/tmp/x")->unix_path, "/tmp/x");
}

TEST(ControlAddress, RefusesEverythingElse) {
  for (const char* text : {"", "host", ":1", "::1:80", "host:", "host:x",
                           "host:70000", "host:-1", "unix:relative", "unix:"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseControlAddress(text).status()))
        << text;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseControlAddress("unix:/" + std::string(107, 'x')).status()));
  EXPECT_TRUE(ParseControlAddress("unix:/" + std::string(106, 'x')).ok());
}

TEST(UnixSocket, RemovesOnlyWhatNobodyListensOn) {
  const std::string folder =
      ::testing::TempDir() + "/rdzv-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/s";
  EXPECT_TRUE(PrepareUnixSocket(path).ok());  // not there

  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  ASSERT_EQ(::listen(fd, 1), 0);
  const absl::Status live = PrepareUnixSocket(path);
  EXPECT_TRUE(absl::IsAlreadyExists(live));
  EXPECT_THAT(Message(live), HasSubstr(path));
  ::close(fd);
  EXPECT_TRUE(PrepareUnixSocket(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));

  std::ofstream(path) << "a file";
  EXPECT_TRUE(absl::IsFailedPrecondition(PrepareUnixSocket(path)));
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace disttrain
