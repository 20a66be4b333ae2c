// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/endpoint.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/transport/node.h"

namespace disttrain::transport {
namespace {

using ::testing::HasSubstr;

// Every test with each kind of address.
class EndpointOver : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Listen(const std::string& name) const {
    return std::string(GetParam()) == "unix" ? folder_.Socket(name)
                                             : GetParam();
  }
  std::unique_ptr<Node> MakeNode(int rank) {
    return std::make_unique<Node>(
        OptionsFor(rank, Listen(fmt::format("r{}", rank))));
  }

  TemporaryFolder folder_;
};

std::string AddressName(const ::testing::TestParamInfo<const char*>& param) {
  const std::string listen = param.param;
  if (listen == "unix") return "Unix";
  return listen == "[::1]:0" ? "Ipv6" : "Ipv4";
}

INSTANTIATE_TEST_SUITE_P(AllAddresses, EndpointOver,
                         ::testing::Values("unix", "127.0.0.1:0", "[::1]:0"),
                         AddressName);

void Connect(const std::vector<Node*>& nodes) {
  std::vector<PeerAddress> peers;
  for (Node* node : nodes) peers.push_back(node->address());
  for (Node* node : nodes) node->Start(peers);
}

TEST_P(EndpointOver, EchoesAMessageWithBuffers) {
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  b->set_on_message([&](PeerId from, ReceivedMessage message) {
    Message reply = Text(fmt::format("re: {}", message.header));
    for (MutableBuffer& buffer : message.buffers) {
      reply.buffers.push_back({buffer.data, buffer.size, buffer.owner});
    }
    EXPECT_TRUE((*b)->Send(from.rank, std::move(reply), Soon()).ok());
  });
  std::string reply;
  a->set_on_message([&](PeerId from, ReceivedMessage message) {
    EXPECT_EQ(from, (PeerId{1, 0}));
    ASSERT_EQ(message.buffers.size(), 2u);
    reply = message.header + "|" +
            std::string(static_cast<char*>(message.buffers[1].data),
                        message.buffers[1].size);
  });
  Connect({a.get(), b.get()});
  const auto bytes = std::make_shared<std::string>("tensor");
  Message message = WithBuffer("hello", bytes);
  message.buffers.insert(message.buffers.begin(), ConstBuffer{});
  ASSERT_TRUE((*a)->Send(1, std::move(message), Soon()).ok());
  ASSERT_TRUE(a->AwaitReceived(1));
  EXPECT_EQ(reply, "re: hello|tensor");
  EXPECT_EQ((*a)->statistics().connections, 1);
}

TEST_P(EndpointOver, LargeBufferArrivesInTheGivenMemoryWhileSmallOnesPass) {
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  std::mt19937_64 random(7);
  const auto bytes = std::make_shared<std::string>(64 << 20, '\0');
  for (size_t i = 0; i < bytes->size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(bytes->data() + i, &word, 8);
  }
  int small_before_large = 0;
  bool exact = false;
  void* where = nullptr;
  b->set_on_message([&](PeerId, ReceivedMessage message) {
    if (message.buffers.empty()) {
      if (where == nullptr) ++small_before_large;
      return;
    }
    where = message.buffers[0].data;
    exact = message.buffers[0].size == bytes->size() &&
            std::memcmp(where, bytes->data(), bytes->size()) == 0;
  });
  Connect({a.get(), b.get()});
  std::thread large([&] {
    EXPECT_TRUE((*a)->Send(1, WithBuffer("large", bytes), Soon()).ok());
  });
  constexpr int kSmall = 500;
  for (int i = 0; i < kSmall; ++i) {
    ASSERT_TRUE((*a)->Send(1, Text("small"), Soon()).ok());
  }
  large.join();
  ASSERT_TRUE(b->AwaitReceived(kSmall + 1));
  EXPECT_TRUE(exact);
  EXPECT_EQ(b->allocated(), std::vector<void*>{where});
  EXPECT_GT(small_before_large, 0);
}

TEST_P(EndpointOver, ManyThreadsLoseAndDoubleNothing) {
  constexpr int kThreads = 16;
  constexpr int kEach = 500;
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  absl::Mutex mu;
  std::multiset<std::string> seen;
  b->set_on_message([&](PeerId, ReceivedMessage message) {
    (*b)->ReleaseLeadership();
    std::string key = message.header;
    if (!message.buffers.empty()) {
      key += std::string(static_cast<char*>(message.buffers[0].data), 4);
    }
    absl::MutexLock lock(&mu);
    seen.insert(std::move(key));
  });
  Connect({a.get(), b.get()});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = fmt::format("{}:", thread * kEach + i);
        const auto bytes =
            std::make_shared<std::string>(i % 50 == 0 ? 300'000 : 4, 'x');
        EXPECT_TRUE((*a)->Send(1, WithBuffer(name, bytes), Soon()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(b->AwaitReceived(kThreads * kEach));
  absl::MutexLock lock(&mu);
  ASSERT_EQ(seen.size(), static_cast<size_t>(kThreads * kEach));
  for (int i = 0; i < kThreads * kEach; ++i) {
    EXPECT_EQ(seen.count(fmt::format("{}:xxxx", i)), 1u) << i;
  }
}

TEST_P(EndpointOver, BothDiallingAtOnceLosesAndDoublesNothing) {
  constexpr int kEach = 20;
  for (int round = 0; round < 60; ++round) {
    auto a = std::make_unique<Node>(
        OptionsFor(0, Listen(fmt::format("a{}", round))));
    auto b = std::make_unique<Node>(
        OptionsFor(1, Listen(fmt::format("b{}", round))));
    Connect({a.get(), b.get()});
    const auto send = [](Node& from, int to) {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(from->Send(to, Text(std::to_string(i)), Soon()).ok());
      }
    };
    std::thread other([&] { send(*b, 0); });
    send(*a, 1);
    other.join();
    ASSERT_TRUE(a->AwaitReceived(kEach)) << round;
    ASSERT_TRUE(b->AwaitReceived(kEach)) << round;
    EXPECT_EQ((*a)->statistics().connections, 1);
    EXPECT_EQ((*b)->statistics().connections, 1);
    EXPECT_EQ(a->losses(1) + b->losses(0), 0u);
    std::thread closing([&] { (*b)->Close(Soon()); });
    (*a)->Close(Soon());
    closing.join();
    EXPECT_EQ(a->received(), kEach);
    EXPECT_EQ(b->received(), kEach);
    EXPECT_EQ(a->losses(1) + b->losses(0), 0u);
  }
}

TEST_P(EndpointOver, NestedCallsWaitInsideHandlersWithoutEnd) {
  constexpr int kDepth = 100;
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  // "n" asks the other side for n - 1 and answers "done n".
  std::atomic<int> finished = 0;
  const auto serve = [&finished](Node& node) {
    auto answered = std::make_shared<std::vector<std::atomic<bool>>>(
        static_cast<size_t>(kDepth + 1));
    return [&node, &finished, answered](PeerId from, ReceivedMessage message) {
      if (message.header.rfind("done ", 0) == 0) {
        (*answered)[std::stoul(message.header.substr(5))] = true;
        return;
      }
      node->ReleaseLeadership();
      const size_t depth = std::stoul(message.header);
      if (depth > 0) {
        EXPECT_TRUE(
            node->Send(from.rank, Text(std::to_string(depth - 1)), Soon())
                .ok());
        EXPECT_TRUE(
            node->Wait([&] { return (*answered)[depth - 1].load(); }, Soon()));
      }
      ++finished;
      EXPECT_TRUE(
          node->Send(from.rank, Text(fmt::format("done {}", depth)), Soon())
              .ok());
    };
  };
  a->set_on_message(serve(*a));
  b->set_on_message(serve(*b));
  Connect({a.get(), b.get()});
  ASSERT_TRUE((*a)->Send(1, Text(std::to_string(kDepth)), Soon()).ok());
  ASSERT_TRUE((*a)->Wait([&] { return finished == kDepth + 1; }, Soon()));
}

TEST_P(EndpointOver, HandlerThatDoesNotReturnNeverHoldsUpReading) {
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  absl::Notification open;
  std::atomic<int> blocked = 0;
  std::atomic<int> passed = 0;
  b->set_on_message([&](PeerId from, ReceivedMessage message) {
    (*b)->ReleaseLeadership();
    if (message.header == "block") {
      ++blocked;
      open.WaitForNotification();
    } else {
      ++passed;
      EXPECT_TRUE((*b)->Send(from.rank, Text("pong"), Soon()).ok());
    }
  });
  Connect({a.get(), b.get()});
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE((*a)->Send(1, Text("block"), Soon()).ok());
    ASSERT_TRUE((*a)->Send(1, Text("ping"), Soon()).ok());
  }
  ASSERT_TRUE(a->AwaitReceived(30));
  EXPECT_EQ(passed, 30);
  open.Notify();
  ASSERT_TRUE(b->AwaitReceived(60));
  EXPECT_EQ(blocked, 30);
}

TEST_P(EndpointOver, OrderIsKeptWithinASizeClass) {
  constexpr int kEach = 40;
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  std::vector<int> small;
  std::vector<int> large;
  b->set_on_message([&](PeerId, ReceivedMessage message) {
    (message.buffers.empty() ? small : large)
        .push_back(std::stoi(message.header));
  });
  Connect({a.get(), b.get()});
  const auto bytes = std::make_shared<std::string>(200'000, 'x');
  std::vector<int> expected;
  for (int i = 0; i < kEach; ++i) {
    expected.push_back(i);
    const std::string name = std::to_string(i);
    ASSERT_TRUE((*a)->Send(1, WithBuffer(name, bytes), Soon()).ok());
    ASSERT_TRUE((*a)->Send(1, Text(name), Soon()).ok());
  }
  ASSERT_TRUE(b->AwaitReceived(2 * kEach));
  EXPECT_EQ(small, expected);
  EXPECT_EQ(large, expected);
}

TEST_P(EndpointOver, TasksRunOnPoolThreadsWhileAWaitingThreadIsLent) {
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  std::atomic<int> done = 0;
  b->set_on_message([&](PeerId, ReceivedMessage) {
    (*b)->Run([&] {
      EXPECT_FALSE((*b)->OnLentThread());
      ++done;
      (*b)->Wake();
    });
  });
  Connect({a.get(), b.get()});
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE((*a)->Send(1, Text("x"), Soon()).ok());
  }
  EXPECT_FALSE((*b)->OnLentThread());
  bool lent = true;
  EXPECT_TRUE((*b)->Wait(
      [&] {
        if (done > 0) lent = lent && (*b)->OnLentThread();
        return done == 200;
      },
      Soon()));
  EXPECT_TRUE(lent);
}

TEST_P(EndpointOver, GoodbyeIsNoLossAndWhatWasQueuedArrives) {
  auto a = MakeNode(0);
  auto b = MakeNode(1);
  Connect({a.get(), b.get()});
  const auto bytes = std::make_shared<std::string>(8 << 20, 'b');
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE((*a)->Send(1, WithBuffer("x", bytes), Soon()).ok());
  }
  (*a)->Close(Soon());
  ASSERT_TRUE(b->AwaitLeft(1));
  EXPECT_EQ(b->received(), 8);
  EXPECT_EQ(b->losses(0), 0u);
  const absl::Status status = (*b)->Send(0, Text("late"), Soon());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(disttrain::Message(status),
              HasSubstr("rank 0: has said goodbye"));
  EXPECT_TRUE(absl::IsCancelled((*a)->Send(1, Text("late"), Soon())));
}

TEST_P(EndpointOver, ReplacedPeerIsReachedUnderItsNewAddress) {
  auto a = MakeNode(0);
  auto old = std::make_unique<Node>(OptionsFor(1, Listen("old")));
  Connect({a.get(), old.get()});
  ASSERT_TRUE((*a)->Send(1, Text("to the old one"), Soon()).ok());
  ASSERT_TRUE(old->AwaitReceived(1));

  EndpointOptions options = OptionsFor(1, Listen("new"));
  options.self.incarnation = 1;
  Node fresh(options);
  fresh.Start({a->address()});
  (*a)->Replace(fresh.address());
  ASSERT_TRUE((*a)->Send(1, Text("to the new one"), Soon()).ok());
  ASSERT_TRUE(fresh.AwaitReceived(1));
  EXPECT_EQ(old->received(), 1);
  EXPECT_EQ(a->losses(1), 0u);
  (*a)->Replace(old->address());  // an older incarnation changes nothing
  ASSERT_TRUE((*a)->Send(1, Text("to the new one"), Soon()).ok());
  ASSERT_TRUE(fresh.AwaitReceived(2));
}

TEST_P(EndpointOver, PeerThatStartsLateIsWaitedFor) {
  // A listener that is made only after the first dial was refused.
  std::string address;
  {
    Node early(OptionsFor(1, Listen("late")));
    address = early.address().address;
  }
  auto a = MakeNode(0);
  a->Start({{{1, 0}, address}});
  ASSERT_TRUE((*a)->Send(1, Text("x"), Soon()).ok());
  Node late(OptionsFor(1, address));
  late.Start({a->address()});
  EXPECT_TRUE(late.AwaitReceived(1));
}

TEST_P(EndpointOver, PeerThatNeverStartsIsLostOnce) {
  std::string address;
  {
    Node gone(OptionsFor(1, Listen("gone")));
    address = gone.address().address;
  }
  EndpointOptions options = OptionsFor(0, Listen("r0"));
  options.connect_timeout = absl::Milliseconds(50);
  Node a(options);
  a.Start({{{1, 0}, address}});
  SendToTheLost(a, 1);
  EXPECT_THAT(a.AwaitLost(1), HasSubstr("rank 1: dialling " + address));
  const absl::Status status = a->Send(1, Text("x"), Soon());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(a.losses(1), 1u);
}

}  // namespace
}  // namespace disttrain::transport
