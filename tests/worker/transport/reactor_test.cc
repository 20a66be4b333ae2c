// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/reactor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace disttrain::transport {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// A pipe that counts the bytes read from it.
class Pipe : public Channel {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
  }
  int fd() const override { return read_.get(); }
  Turn OnReady(uint32_t) override {
    char byte = 0;
    if (::read(read_.get(), &byte, 1) == 1) ++received_;
    Turn turn;
    if (on_read_) turn.deliver = on_read_;
    return turn;
  }
  // Set before the reactor starts.
  void OnRead(std::function<void()> f) { on_read_ = std::move(f); }
  void Send() { EXPECT_EQ(::write(write_.get(), "x", 1), 1); }
  int received() const { return received_; }

 private:
  UniqueFd read_;
  UniqueFd write_;
  std::function<void()> on_read_;
  std::atomic<int> received_ = 0;
};

class ReactorTest : public ::testing::Test {
 protected:
  void Start(int max_threads) {
    auto created = Reactor::Create(max_threads);
    ASSERT_TRUE(created.ok()) << created.status();
    reactor_ = *std::move(created);
    ASSERT_TRUE(reactor_->Add(pipe_, EPOLLIN).ok());
    reactor_->Start();
  }
  // Keeps one thread of the pool until the test ends.
  void Occupy() {
    absl::Notification begun;
    reactor_->Run([&] {
      begun.Notify();
      end_.WaitForNotification();
    });
    begun.WaitForNotification();
  }
  void TearDown() override { end_.Notify(); }

  absl::Notification end_;
  const std::shared_ptr<Pipe> pipe_ = std::make_shared<Pipe>();
  std::unique_ptr<Reactor> reactor_;
};

TEST_F(ReactorTest, AnIdleThreadReads) {
  Start(1);
  pipe_->Send();
  EXPECT_TRUE(reactor_->Wait([&] { return pipe_->received() == 1; }, Soon()));
}

// The leader's last act is to summon the follower that has waited longest,
// which has got what it waited for at the same time and leaves.
TEST_F(ReactorTest, AFollowerThatLeavesPassesTheLeadOn) {
  Start(1);
  Occupy();
  absl::Notification leads;
  absl::Notification leaver_follows;
  absl::Notification other_follows;
  absl::Notification leader_has_left;
  std::thread leader([&] {
    int looks = 0;
    EXPECT_FALSE(reactor_->Wait(
        [&] {
          if (++looks == 2) leads.Notify();
          if (looks == 3) other_follows.WaitForNotification();
          return false;
        },
        absl::Now() + absl::Milliseconds(20)));
    leader_has_left.Notify();
  });
  leads.WaitForNotification();
  std::thread leaver([&] {
    int looks = 0;
    EXPECT_TRUE(reactor_->Wait(
        [&] {
          if (++looks == 2) leaver_follows.Notify();
          if (looks < 2) return false;
          leader_has_left.WaitForNotification();
          return true;
        },
        Soon()));
  });
  leaver_follows.WaitForNotification();
  std::thread other([&] {
    int looks = 0;
    EXPECT_TRUE(reactor_->Wait(
        [&] {
          if (++looks == 2) other_follows.Notify();
          return pipe_->received() == 1;
        },
        Soon()));
  });
  leader.join();
  leaver.join();
  pipe_->Send();
  other.join();
}

// Threads of the pool that look for more before they sleep are in nobody's way.
TEST_F(ReactorTest, WaitersAndTasksGetWhatSpinningThreadsHold) {
  pipe_->OnRead([this] { reactor_->Wake(); });
  Start(2);
  std::atomic<int> tasks = 0;
  for (int i = 1; i <= 2000; ++i) {
    pipe_->Send();
    reactor_->Run([&] {
      ++tasks;
      reactor_->Wake();
    });
    ASSERT_TRUE(reactor_->Wait(
        [&] { return pipe_->received() == i && tasks == i; }, Soon()));
  }
}

// Whoever comes and goes, and in whatever order, what arrives is read.
TEST_F(ReactorTest, ReadsWhileWaitersComeAndGo) {
  Start(4);
  for (int i = 0; i < 3; ++i) Occupy();
  constexpr int kBytes = 2000;
  std::vector<std::thread> waiters;
  std::atomic<int> sent = 0;
  for (int i = 0; i < 6; ++i) {
    waiters.emplace_back([&, i] {
      for (int next = i; next < kBytes; next += 1 + i) {
        EXPECT_TRUE(
            reactor_->Wait([&] { return pipe_->received() > next; }, Soon()));
        reactor_->Wake();
      }
    });
  }
  for (; sent < kBytes; ++sent) {
    pipe_->Send();
    while (pipe_->received() < sent - 16) std::this_thread::yield();
  }
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace disttrain::transport
