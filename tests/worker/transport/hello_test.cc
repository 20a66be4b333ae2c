// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/hello.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace disttrain::transport {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Hello FromTo(PeerId from, PeerId to) {
  return {kProtocolVersion, 2, from, to, "job-1"};
}

// What rank 1 answers to rank 0's hello, changed by `change`.
std::optional<Refusal> Answer(Link link, void (*change)(Hello&) = nullptr,
                              int known_incarnation = 0) {
  Hello theirs = FromTo({0, 0}, {1, 0});
  if (change != nullptr) change(theirs);
  return CheckHello(theirs, FromTo({1, 0}, {0, 0}),
                    KnownPeer{known_incarnation, link});
}

TEST(Hello, ComesBackAsItWas) {
  const Hello hello = {1, 7, {3, 2}, {5, 1}, "9f2c-uid"};
  const auto decoded = DecodeHello(EncodeHello(hello));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, hello);
}

TEST(Hello, EveryTruncatedPrefixOfTheFixedPartIsAnError) {
  const std::string bytes = EncodeHello({1, 7, {3, 2}, {5, 1}, "uid"});
  for (size_t size = 0; size < 24; ++size) {
    EXPECT_FALSE(DecodeHello(bytes.substr(0, size)).ok()) << size;
  }
}

TEST(Hello, OfAnotherVersionStillSaysWhoItIs) {
  Hello hello = {9, 7, {3, 2}, {5, 1}, "uid"};
  const auto decoded = DecodeHello(EncodeHello(hello).substr(0, 12));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->version, 9u);
  EXPECT_EQ(decoded->attempt, 7);
  EXPECT_EQ(decoded->from.rank, 3);
}

TEST(Hello, RefusalComesBackAsItWas) {
  for (const auto kind : {Refusal::Kind::kFinal, Refusal::Kind::kRetry}) {
    const Refusal refusal{kind, "rank 1 is no peer of rank 0"};
    const auto decoded = DecodeRefusal(EncodeRefusal(refusal));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, refusal);
  }
  EXPECT_FALSE(DecodeRefusal("").ok());
}

TEST(Hello, MismatchesAreRefusedAndBothValuesNamed) {
  const auto text = [](void (*change)(Hello&)) {
    const auto refusal = Answer(Link::kNone, change);
    return refusal && refusal->kind == Refusal::Kind::kFinal ? refusal->text
                                                             : "";
  };
  EXPECT_THAT(text([](Hello& h) { h.version = 9; }),
              AllOf(HasSubstr("version 9"), HasSubstr("speaks 1")));
  EXPECT_THAT(text([](Hello& h) { h.job_uid = "job-2"; }),
              AllOf(HasSubstr("'job-2'"), HasSubstr("'job-1'")));
  EXPECT_THAT(text([](Hello& h) { h.attempt = 1; }),
              AllOf(HasSubstr("attempt 1"), HasSubstr("attempt 2")));
  EXPECT_THAT(text([](Hello& h) { h.to.rank = 4; }),
              AllOf(HasSubstr("dialled rank 4"), HasSubstr("reached rank 1")));
}

TEST(Hello, StrangerIsRefused) {
  const auto refusal =
      CheckHello(FromTo({7, 0}, {1, 0}), FromTo({1, 0}, {7, 0}), std::nullopt);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text, "rank 7 is no peer of rank 1");
}

TEST(Hello, OlderIncarnationIsAZombieAndANewerOneIsEarly) {
  const auto zombie = Answer(Link::kNone, nullptr, 1);
  ASSERT_TRUE(zombie);
  EXPECT_EQ(zombie->kind, Refusal::Kind::kFinal);
  EXPECT_EQ(zombie->text, "rank 0 says hello with incarnation 0, known is 1");
  const auto early =
      Answer(Link::kNone, [](Hello& h) { h.from.incarnation = 3; });
  ASSERT_TRUE(early);
  EXPECT_EQ(early->kind, Refusal::Kind::kRetry);
}

TEST(Hello, WhoIsMeantMustBeWhoAnswers) {
  const auto early =
      Answer(Link::kNone, [](Hello& h) { h.to.incarnation = 1; });
  ASSERT_TRUE(early);  // the successor of this process is meant
  EXPECT_EQ(early->kind, Refusal::Kind::kRetry);

  const Hello ours = FromTo({0, 0}, {1, 0});
  EXPECT_FALSE(CheckAnswer(FromTo({1, 0}, {0, 0}), ours));
  EXPECT_TRUE(CheckAnswer(FromTo({1, 1}, {0, 0}), ours));
  EXPECT_TRUE(CheckAnswer(FromTo({2, 0}, {0, 0}), ours));
}

TEST(Hello, OfTwoThatDialEachOtherTheLowerRankIsTaken) {
  EXPECT_FALSE(Answer(Link::kNone));
  EXPECT_FALSE(Answer(Link::kConnecting));
  EXPECT_FALSE(Answer(Link::kGreeting));  // from rank 0 at rank 1

  const Hello theirs = FromTo({1, 0}, {0, 0});
  const Hello ours = FromTo({0, 0}, {1, 0});
  EXPECT_FALSE(CheckHello(theirs, ours, KnownPeer{0, Link::kConnecting}));
  const auto refusal = CheckHello(theirs, ours, KnownPeer{0, Link::kGreeting});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->kind, Refusal::Kind::kRetry);
}

TEST(Hello, DuplicatesTheLostAndTheDepartedAreRefused) {
  for (const Link link : {Link::kConnected, Link::kLeft, Link::kLost}) {
    EXPECT_TRUE(Answer(link));
  }
}

}  // namespace
}  // namespace disttrain::transport
