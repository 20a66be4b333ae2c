// SPDX-License-Identifier: Apache-2.0
// Two processes, one of which is stopped, killed, or leaves.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/transport/node.h"

namespace disttrain::transport {
namespace {

using ::testing::HasSubstr;

// Rank 1: tests/worker/transport/peer_process.cc.
class Child {
 public:
  explicit Child(const std::string& listen) {
    int in[2];
    int out[2];
    EXPECT_EQ(::pipe(in) | ::pipe(out), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::close_range(3, ~0U, 0);
      ::execl(PEER_PROCESS, PEER_PROCESS, listen.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    char c = 0;
    while (::read(out[0], &c, 1) == 1 && c != '\n') address_ += c;
    ::close(out[0]);
  }
  ~Child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    Join();
  }

  const std::string& address() const { return address_; }
  void Tell(const std::string& rank0) {
    const std::string line = rank0 + "\n";
    EXPECT_EQ(::write(to_, line.data(), line.size()),
              static_cast<ssize_t>(line.size()));
    ::close(to_);
  }
  void Signal(int signal) { EXPECT_EQ(::kill(pid_, signal), 0); }
  int Join() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  std::string address_;
};

class Processes : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Listen(const std::string& name) const {
    return std::string(GetParam()) == "unix" ? folder_.Socket(name)
                                             : GetParam();
  }

  // Rank 0, connected to a child that has answered once.
  void Begin() {
    child_ = std::make_unique<Child>(Listen("r1"));
    EndpointOptions options = OptionsFor(0, Listen("r0"));
    options.limits.send_queue_bytes = 8 << 20;
    node_ = std::make_unique<Node>(options);
    node_->Start({{{1, 0}, child_->address()}});
    child_->Tell(node_->address().address);
    ASSERT_TRUE((*node_)->Send(1, Text("hello"), Soon()).ok());
    ASSERT_TRUE(node_->AwaitReceived(1));
  }

  TemporaryFolder folder_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<Node> node_;
};

std::string AddressName(const ::testing::TestParamInfo<const char*>& param) {
  return std::string(param.param) == "unix" ? "Unix" : "Tcp";
}

INSTANTIATE_TEST_SUITE_P(AllAddresses, Processes,
                         ::testing::Values("unix", "127.0.0.1:0"), AddressName);

TEST_P(Processes, KilledPeerIsLostAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  child_->Signal(SIGKILL);
  EXPECT_THAT(node_->AwaitLost(1), HasSubstr("rank 1: "));
  EXPECT_EQ(node_->losses(1), 1u);
  const absl::Status status = (*node_)->Send(1, Text("x"), Soon());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_P(Processes, PeerKilledAmidALargeMessageIsLost) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  child_->Signal(SIGSTOP);
  const auto bytes = std::make_shared<std::string>(64 << 20, 'x');
  ASSERT_TRUE((*node_)->Send(1, WithBuffer("large", bytes), Soon()).ok());
  child_->Signal(SIGKILL);
  EXPECT_THAT(node_->AwaitLost(1), HasSubstr("rank 1: "));
}

TEST_P(Processes, StuckPeerCostsBoundedMemoryAndMissesDeadlines) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  child_->Signal(SIGSTOP);
  const auto bytes = std::make_shared<std::string>(1 << 20, 'x');
  absl::Status status;
  int sent = 0;
  while (status.ok() && sent < 1000) {
    status = (*node_)->Send(1, WithBuffer("fill", bytes),
                            absl::Now() + absl::Milliseconds(100));
    if (status.ok()) ++sent;
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(disttrain::Message(status), HasSubstr("rank 1: "));
  // Eight in the queue, the rest in the kernel's buffers.
  EXPECT_LT(sent, 100);
  child_->Signal(SIGCONT);
  ASSERT_TRUE(node_->AwaitReceived(1 + sent));
  EXPECT_EQ(node_->losses(1), 0u);
}

TEST_P(Processes, PeerThatLeavesIsNoLoss) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  ASSERT_TRUE((*node_)->Send(1, Text("leave"), Soon()).ok());
  ASSERT_TRUE(node_->AwaitLeft(1));
  EXPECT_EQ(child_->Join(), 0);
  EXPECT_EQ(node_->losses(1), 0u);
}

TEST_P(Processes, CloseEndsInTimeThoughThePeerIsStuck) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  child_->Signal(SIGSTOP);
  const auto bytes = std::make_shared<std::string>(32 << 20, 'x');
  ASSERT_TRUE((*node_)->Send(1, WithBuffer("large", bytes), Soon()).ok());
  (*node_)->Close(absl::Now() + absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsCancelled((*node_)->Send(1, Text("x"), Soon())));
}

}  // namespace
}  // namespace disttrain::transport
