// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using testing::Everything;
using testing::Gate;
using testing::Relay;

TEST(NestedCalls, GoBackAndForthAsDeepAsOneLikes) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto here = Local<Relay>();
  const auto there = Remote<Relay>(1);
  EXPECT_EQ(there.Sync(&Relay::PingPong, there, here, 60), 60);
}

TEST(NestedCalls, UnderManyConcurrentCallersNeverDeadlock) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto here = Local<Relay>();
  const auto there = Remote<Relay>(1);
  const auto third = Remote<Relay>(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&, i] {
      const Agent::Scope inner(job.agent(0));
      for (int round = 0; round < 5; ++round) {
        sum +=
            there.Sync(&Relay::PingPong, there, i % 2 == 0 ? here : third, 10);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 16 * 5 * 10);
}

TEST(NestedCalls, AWaitingCallerNeverRunsOtherPeoplesMethods) {
  // The caller holds a lock that the method needs: if the waiting thread ran
  // it, it would wait for itself.
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Local<Gate>(1);
  const auto relay = Remote<Relay>(1);
  // Rank 1 waits inside this process's gate; this thread opens it only after
  // another call of its own has come back.
  const auto passing = relay.Async(&Relay::PassThrough, gate);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(relay.Sync(&Relay::CallerRank), 0);
  }
  while (gate->Waiting() == 0) {
  }
  EXPECT_EQ(relay.Sync(&Relay::CallerRank), 0);
  gate->Open();
  EXPECT_EQ(passing.Get(), 1);
}

}  // namespace
}  // namespace disttrain::rpc
