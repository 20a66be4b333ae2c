// SPDX-License-Identifier: Apache-2.0
#include "proto/runtime/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace disttrain {
namespace {

// Signals in the order in which they came.
class Taken {
 public:
  void Add(int signal, const std::string& thread) {
    const absl::MutexLock lock(&mu_);
    signals_.push_back(signal);
    thread_ = thread;
  }
  std::vector<int> Await(size_t count) {
    const absl::MutexLock lock(&mu_);
    const auto enough = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return signals_.size() >= count;
    };
    mu_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(30));
    return signals_;
  }
  std::string thread() {
    const absl::MutexLock lock(&mu_);
    return thread_;
  }

 private:
  absl::Mutex mu_;
  std::vector<int> signals_ ABSL_GUARDED_BY(mu_);
  std::string thread_ ABSL_GUARDED_BY(mu_);
};

std::string ThreadName() {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

TEST(Signals, AreTakenByTheNamedThread) {
  BlockSignals();
  Taken taken;
  {
    const SignalThread thread(
        [&taken](int signal) { taken.Add(signal, ThreadName()); });
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(taken.Await(1), std::vector<int>({SIGTERM}));
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ(taken.Await(2), std::vector<int>({SIGTERM, SIGINT}));
    EXPECT_EQ(taken.thread(), "signals");
  }
  // The end of the thread is no signal.
  EXPECT_EQ(taken.Await(2).size(), 2u);
}

TEST(Signals, AClosedPipeIsAnErrorOfWrite) {
  BlockSignals();
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ::close(pipe[0]);
  EXPECT_EQ(::write(pipe[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(pipe[1]);
}

TEST(Signals, AChildCanBeEndedBySigterm) {
  BlockSignals();
  const pid_t child = ::fork();
  if (child == 0) {
    UnblockSignals();
    while (true) ::pause();
  }
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(Threads, KeepFifteenBytesOfTheirName) {
  const std::string before = ThreadName();
  NameThread("a-name-of-many-bytes");
  EXPECT_EQ(ThreadName(), "a-name-of-many-");
  NameThread(before);
}

}  // namespace
}  // namespace disttrain
