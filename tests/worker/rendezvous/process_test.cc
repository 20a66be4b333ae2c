// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes that are killed.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/check.h"
#include "tests/worker/rendezvous/harness.h"

namespace disttrain::testing {
namespace {

using ::testing::HasSubstr;

// A rank_main process; killed and reaped at the end at the latest.
class Process {
 public:
  Process(const std::string& target, int rank, int world_size) {
    int in[2];
    int out[2];
    DISTTRAIN_CHECK(::pipe2(in, O_CLOEXEC) == 0);
    DISTTRAIN_CHECK(::pipe2(out, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<std::string> words = {DISTTRAIN_RANK_MAIN, target,
                                      std::to_string(rank),
                                      std::to_string(world_size)};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    DISTTRAIN_CHECK(::posix_spawn(&pid_, argv[0], &actions, nullptr,
                                  argv.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    stdin_ = in[1];
    stdout_ = out[0];
  }

  ~Process() {
    if (!reaped_) {
      Kill();
      Wait();
    }
    ::close(stdin_);
    ::close(stdout_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Kill() { ::kill(pid_, SIGKILL); }

  void Tell(const std::string& command) {
    DISTTRAIN_CHECK(::write(stdin_, command.data(), command.size()) ==
                    static_cast<ssize_t>(command.size()));
  }

  // The next line; "" at the end, or if none came in time.
  std::string Line() {
    std::string line;
    char byte = 0;
    while (true) {
      pollfd ready = {stdout_, POLLIN, 0};
      const int timeout =
          static_cast<int>(absl::ToInt64Milliseconds(kGenerous));
      if (::poll(&ready, 1, timeout) != 1) return "";
      if (::read(stdout_, &byte, 1) != 1) return "";
      if (byte == '\n') return line;
      line += byte;
    }
  }

  // The exit code, or 128 + the signal.
  int Wait() {
    int status = 0;
    DISTTRAIN_CHECK(::waitpid(pid_, &status, 0) == pid_);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int stdin_ = -1;
  int stdout_ = -1;
  bool reaped_ = false;
};

class ProcessTest : public ::testing::Test {
 protected:
  // Ranks [first, world_size).
  void Start(int world_size, int first = 0) {
    ranks_.resize(static_cast<size_t>(world_size));
    for (int rank = first; rank < world_size; ++rank) Spawn(rank, world_size);
  }

  void Spawn(int rank, int world_size) {
    ranks_[static_cast<size_t>(rank)] =
        std::make_unique<Process>(folder_.socket(), rank, world_size);
  }

  void AllJoined() {
    for (auto& rank : ranks_) ASSERT_EQ(rank->Line(), "joined");
  }

  Folder folder_;
  std::vector<std::unique_ptr<Process>> ranks_;
};

TEST_F(ProcessTest, TellsTheOthersWhichRankWasKilled) {
  Start(4);
  AllJoined();
  ranks_[2]->Kill();
  for (const size_t rank : {size_t{0}, size_t{1}, size_t{3}}) {
    EXPECT_EQ(ranks_[rank]->Line(),
              "failure of rank 2 (observer, pod-2): connection lost");
    EXPECT_EQ(ranks_[rank]->Wait(), 75);
  }
}

TEST_F(ProcessTest, TellsTheOthersThatRankZeroWasKilled) {
  Start(3);
  AllJoined();
  ranks_[0]->Kill();
  for (const size_t rank : {size_t{1}, size_t{2}}) {
    EXPECT_THAT(ranks_[rank]->Line(),
                HasSubstr("failure of rank 0 (agent, pod-0): connection"));
    EXPECT_EQ(ranks_[rank]->Wait(), 75);
  }
}

TEST_F(ProcessTest, WaitsForALateRankZero) {
  {
    // The socket file of a rank 0 that was killed is in the way.
    Process killed(folder_.socket(), 0, 3);
    ASSERT_TRUE(Eventually([&] {
      return ::access((folder_.path() + "/r.sock").c_str(), F_OK) == 0;
    }));
  }
  Start(3, 1);
  Spawn(0, 3);
  AllJoined();
}

TEST_F(ProcessTest, EndsWellAfterFinish) {
  Start(3);
  AllJoined();
  ranks_[1]->Tell("finish\n");
  for (auto& rank : ranks_) EXPECT_EQ(rank->Line(), "finish");
  for (auto& rank : ranks_) rank->Tell("leave\n");
  for (auto& rank : ranks_) EXPECT_EQ(rank->Wait(), 0);
}

}  // namespace
}  // namespace disttrain::testing
