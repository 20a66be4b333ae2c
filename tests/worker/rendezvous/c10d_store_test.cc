// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/c10d_store.h"

#include <memory>
#include <thread>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/rendezvous/harness.h"
#include "torch/csrc/distributed/c10d/PrefixStore.hpp"
#include "torch/csrc/distributed/c10d/TCPStore.hpp"

namespace disttrain::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// The store of one rank, with the client that the test keeps a hand on.
struct Ranks {
  Folder folder;
  std::unique_ptr<RendezvousServer> server;
  std::vector<std::shared_ptr<RendezvousClient>> clients;

  explicit Ranks(int world_size) {
    server = *RendezvousServer::Start(OptionsOf(folder.socket(), world_size));
    std::vector<std::thread> joins;
    for (int rank = 0; rank < world_size; ++rank) {
      ClientOptions options;
      options.target = folder.socket();
      options.caller = CallerOf(rank);
      clients.push_back(*RendezvousClient::Connect(options));
    }
    for (int rank = 0; rank < world_size; ++rank) {
      joins.emplace_back([this, rank, world_size] {
        auto& client = *clients[static_cast<size_t>(rank)];
        EXPECT_TRUE(client.Join(MemberOf(rank), world_size, Deadline()).ok());
        client.StartHeartbeat(
            absl::Milliseconds(50), [] { return v1::Report(); },
            [](const v1::Event&) {});
      });
    }
    for (std::thread& join : joins) join.join();
  }
  c10::intrusive_ptr<RendezvousStore> Store(size_t rank) {
    return c10::make_intrusive<RendezvousStore>(clients[rank]);
  }
};

// What a store answers to the questions that process groups ask.
std::vector<std::string> Transcript(c10d::Store& store) {
  const auto text = [](const std::vector<uint8_t>& bytes) {
    return std::string(bytes.begin(), bytes.end());
  };
  std::vector<std::string> log;
  log.push_back(fmt::format("check {}", store.check({"a"})));
  store.set("a", std::string("1"));
  log.push_back("get " + store.get_to_str("a"));
  log.push_back(fmt::format("check {}", store.check({"a"})));
  log.push_back(fmt::format("check {}", store.check({"a", "b"})));
  log.push_back(fmt::format("add {}", store.add("n", 5)));
  log.push_back(fmt::format("add {}", store.add("n", -7)));
  log.push_back("get " + store.get_to_str("n"));
  log.push_back("cas " + store.compareSet("c", std::string("x"), "y"));
  log.push_back(fmt::format("check {}", store.check({"c"})));
  log.push_back("cas " + store.compareSet("c", std::string(), "first"));
  log.push_back("cas " + store.compareSet("c", std::string(), "second"));
  log.push_back("cas " + store.compareSet("c", std::string("first"), "third"));
  log.push_back("get " + store.get_to_str("c"));
  store.append("p", {'a', 'b'});
  store.append("p", {'c'});
  log.push_back("get " + text(store.get("p")));
  store.multiSet({"m", "o"}, {{'1'}, {0, 255}});
  for (const auto& value : store.multiGet({"m", "o"})) {
    log.push_back("multi " + text(value));
  }
  log.push_back(fmt::format("delete {}", store.deleteKey("a")));
  log.push_back(fmt::format("delete {}", store.deleteKey("a")));
  store.wait({"n", "c"}, milliseconds(1000));
  log.push_back(fmt::format("extended {}", store.hasExtendedApi()));
  return log;
}

TEST(RendezvousStore, AnswersWhatTcpStoreAnswers) {
  Ranks ranks(1);
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  auto reference = c10::make_intrusive<c10d::TCPStore>("localhost", options);
  EXPECT_EQ(Transcript(*ranks.Store(0)), Transcript(*reference));
}

TEST(RendezvousStore, WorksBehindPrefixStores) {
  Ranks ranks(2);
  c10d::PrefixStore left("group", ranks.Store(0));
  c10d::PrefixStore right("group", ranks.Store(1));
  c10d::PrefixStore other("other", ranks.Store(1));
  std::string got;
  std::thread getter([&] { got = right.get_to_str("k"); });
  left.set("k", std::string("v"));
  getter.join();
  EXPECT_EQ(got, "v");
  EXPECT_FALSE(other.check({"k"}));
  EXPECT_EQ(other.getNumKeys(), 1);
}

TEST(RendezvousStore, NamesTheKeyThatWasNotSetInTime) {
  Ranks ranks(1);
  auto store = ranks.Store(0);
  store->setTimeout(milliseconds(100));
  for (const auto& wait : std::vector<std::function<void()>>{
           [&] { store->get("missing"); }, [&] { store->wait({"missing"}); },
           [&] { store->wait({"missing"}, milliseconds(50)); }}) {
    try {
      wait();
      FAIL() << "nothing was thrown";
    } catch (const c10::DistStoreError& error) {
      EXPECT_THAT(error.what_without_backtrace(), HasSubstr("missing"));
    }
  }
}

TEST(RendezvousStore, HasCloneWithATimeoutOfItsOwn) {
  Ranks ranks(1);
  auto store = ranks.Store(0);
  auto clone = store->clone();
  clone->setTimeout(milliseconds(50));
  EXPECT_EQ(store->getTimeout(), c10d::Store::kDefaultTimeout);
  store->set("k", std::string("v"));
  EXPECT_EQ(clone->get_to_str("k"), "v");
  EXPECT_THROW(clone->get("missing"), c10::DistStoreError);
}

TEST(RendezvousStore, EndsEveryWaitWithTheRootCause) {
  Ranks ranks(3);
  auto store = ranks.Store(1);
  std::string what;
  std::thread waiter([&] {
    try {
      store->wait({"never"}, c10d::Store::kNoTimeout);
    } catch (const c10::DistStoreError& error) {
      what = error.what_without_backtrace();
    }
  });
  v1::Failure failure;
  failure.set_rank(2);
  failure.set_cause("out of memory");
  EXPECT_TRUE(ranks.clients[2]->ReportFailure(failure).ok());
  waiter.join();
  EXPECT_THAT(what,
              HasSubstr("rank 2 (observer, pod pod-2) failed: out of memory"));
  EXPECT_THROW(store->set("k", std::string("v")), c10::DistStoreError);
}

TEST(RendezvousStore, ServesManyThreadsAtOnce) {
  Ranks ranks(1);
  auto store = ranks.Store(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) store->add("sum", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->get_to_str("sum"), "400");
}

}  // namespace
}  // namespace disttrain::testing
