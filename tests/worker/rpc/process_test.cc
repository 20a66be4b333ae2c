// SPDX-License-Identifier: Apache-2.0
//
// Three processes on real sockets: the life of references, and the death of
// their holders. The test process is rank 0; the others are this program again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "fmt/format.h"
#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using testing::Counter;
using testing::Echo;
using testing::Everything;
using testing::Gate;
using ::testing::HasSubstr;
using testing::Relay;

constexpr int kRanks = 3;

Agent* this_agent = nullptr;

}  // namespace

namespace testing {
// Asks a process for its own figures.
class ProcessInspector {
 public:
  // Owned objects, owned forks, remote references, pending forks. This call's
  // own inspector is one object with one fork.
  std::vector<int64_t> Figures() {
    const AgentStatistics now = this_agent->statistics();
    return {now.owned_objects, now.owned_forks, now.remote_references,
            now.pending_forks};
  }
  int64_t Pid() { return getpid(); }
};
}  // namespace testing
}  // namespace disttrain::rpc

DISTTRAIN_REMOTE(disttrain::rpc::testing::ProcessInspector, Figures, Pid);

namespace disttrain::rpc {
namespace {

using testing::ProcessInspector;

std::string AddressOf(const std::string& folder, int rank) {
  return fmt::format("unix:{}/d{}.sock", folder, rank);
}

std::unique_ptr<transport::Endpoint> ListenAt(const std::string& folder,
                                              int rank) {
  transport::EndpointOptions options;
  options.job_uid = "rpc-process-test";
  options.self = {rank, 0};
  options.listen = AddressOf(folder, rank);
  auto endpoint = transport::Endpoint::Listen(options);
  if (!endpoint.ok()) {
    fmt::print(stderr, "{}\n", endpoint.status().ToString());
    _exit(3);
  }
  return *std::move(endpoint);
}

std::unique_ptr<Agent> StartAt(const std::string& folder, int rank,
                               transport::Endpoint& endpoint) {
  AgentOptions options;
  options.self = PeerAt(rank);
  for (int other = 0; other < kRanks; ++other) {
    options.peers.push_back(PeerAt(other));
    options.addresses.push_back({{other, 0}, AddressOf(folder, other)});
  }
  options.endpoint = &endpoint;
  options.registry = Everything().And(Remotes<ProcessInspector>());
  return Agent::Start(std::move(options));
}

// What ranks 1 and 2 run: serve until standard input ends.
int Serve(const std::string& folder, int rank) {
  const auto endpoint = ListenAt(folder, rank);
  const auto agent = StartAt(folder, rank, *endpoint);
  this_agent = agent.get();
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 4;
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return agent->Shutdown(absl::Now() + absl::Seconds(5)) ? 0 : 5;
}

// A child process that serves one rank.
class Process {
 public:
  Process(const std::string& folder, int rank) {
    int input[2];
    int output[2];
    EXPECT_EQ(pipe2(input, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
    const std::string number = std::to_string(rank);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execl("/proc/self/exe", "worker_rpc_process_test", "--serve",
            folder.c_str(), number.c_str(), nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    char ready[6];
    EXPECT_EQ(read(output[0], ready, 6), 6);
    close(output[0]);
  }
  ~Process() { EXPECT_EQ(End(), 0); }

  void Kill() {
    kill(pid_, SIGKILL);
    killed_ = true;
  }
  int End() {
    if (pid_ < 0) return 0;
    close(input_);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    if (killed_) return 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  bool killed_ = false;
};

class ThreeProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rpcXXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    endpoint_ = ListenAt(folder_, 0);
    for (int rank = 1; rank < kRanks; ++rank) {
      processes_.push_back(std::make_unique<Process>(folder_, rank));
    }
    agent_ = StartAt(folder_, 0, *endpoint_);
    scope_ = std::make_unique<Agent::Scope>(*agent_);
  }
  void TearDown() override {
    scope_.reset();
    agent_->Shutdown(Soon());
    processes_.clear();
    agent_.reset();
    endpoint_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Waits until rank's figures, beside the inspector's own, are these.
  bool Eventually(const RRef<ProcessInspector>& inspector, int64_t objects,
                  int64_t forks, int64_t remote) {
    const std::vector<int64_t> wanted = {objects + 1, forks + 1, remote, 0};
    const absl::Time end = Soon();
    while (inspector.Sync(&ProcessInspector::Figures) != wanted) {
      if (absl::Now() > end) return false;
    }
    return true;
  }

  std::string folder_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Agent::Scope> scope_;
};

TEST_F(ThreeProcesses, AReferenceIsHandedOnAndCountedDownToNothing) {
  const auto owner = Remote<ProcessInspector>(1);
  const auto holder = Remote<ProcessInspector>(2);
  EXPECT_NE(owner.Sync(&ProcessInspector::Pid), getpid());
  auto counter = Remote<Counter>(1, 40);
  {
    const auto relay = Remote<Relay>(2);
    relay.Sync(&Relay::Keep, counter);
    EXPECT_TRUE(Eventually(owner, /*objects=*/1, /*forks=*/2, /*remote=*/0));
    EXPECT_TRUE(Eventually(holder, 1, 1, 1));  // the relay, and its counter
    counter = {};
    EXPECT_TRUE(Eventually(owner, 1, 1, 0));
    EXPECT_EQ(relay.Sync(&Relay::Give).Sync(&Counter::Add, 2), 42);
    relay.Sync(&Relay::Forget);
    EXPECT_TRUE(Eventually(owner, 0, 0, 0));
    EXPECT_TRUE(Eventually(holder, 1, 1, 0));
  }
  EXPECT_TRUE(Eventually(holder, 0, 0, 0));
}

TEST_F(ThreeProcesses, AKilledHoldersReferencesAreReleased) {
  const auto owner = Remote<ProcessInspector>(1);
  auto counter = Remote<Counter>(1, 1);
  const auto relay = Remote<Relay>(2);
  relay.Sync(&Relay::Keep, counter);
  EXPECT_TRUE(Eventually(owner, 1, 2, 0));
  counter = {};
  EXPECT_TRUE(Eventually(owner, 1, 1, 0));
  processes_[1]->Kill();
  EXPECT_TRUE(Eventually(owner, 0, 0, 0));
  EXPECT_THAT(MessageOfThrow<PeerLost>([&] { relay.Sync(&Relay::Forget); }),
              HasSubstr("observer 1 (rank 2, pod job-2)"));
}

TEST_F(ThreeProcesses, AKilledPeersPendingCallsFailAtOnce) {
  const auto gate = Remote<Gate>(2, 1);
  const auto forever =
      gate.With({.timeout = absl::ZeroDuration()}).Async(&Gate::PassLater);
  const auto relayed = Remote<Relay>(1).Async(&Relay::PassThroughLater, gate);
  while (gate.Sync(&Gate::Deferred) < 2) {
  }
  processes_[1]->Kill();
  EXPECT_THROW(forever.Get(), PeerLost);
  try {
    relayed.Get();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RemoteException& error) {
    EXPECT_EQ(error.cause(), ErrorCode::kPeerLost);
  }
}

TEST_F(ThreeProcesses, TensorsOfAllSizesArriveWhole) {
  const auto echo = Remote<Echo>(1);
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{4},
                             int64_t{100'000}, int64_t{4'000'000}}) {
    const at::Tensor tensor = at::ones({size}, at::kFloat);
    EXPECT_TRUE(at::equal(echo.Sync(&Echo::Tensor, tensor), tensor)) << size;
  }
}

TEST_F(ThreeProcesses, NestedCallsUnderManyCallersNeverDeadlock) {
  const auto here = Local<Relay>();
  const auto first = Remote<Relay>(1);
  const auto second = Remote<Relay>(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int i = 0; i < 12; ++i) {
    callers.emplace_back([&, i] {
      const Agent::Scope scope(*agent_);
      sum += first.Sync(&Relay::PingPong, first, i % 2 == 0 ? here : second,
                        int64_t{12});
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 12 * 12);
}

// Not a test of speed (it asserts none): says what a call costs here.
TEST_F(ThreeProcesses, SaysWhatACallCosts) {
  const auto echo = Remote<Echo>(1);
  const at::Tensor state = at::ones({4}, at::kFloat);
  std::vector<int64_t> micros;
  for (int i = 0; i < 2000; ++i) {
    const absl::Time start = absl::Now();
    echo.Sync(&Echo::Tensor, state);
    micros.push_back(absl::ToInt64Microseconds(absl::Now() - start));
  }
  std::sort(micros.begin(), micros.end());
  RecordProperty("median_microseconds", std::to_string(micros[1000]));
  fmt::print("4 floats there and back: median {} us, p10 {} us, p90 {} us\n",
             micros[1000], micros[200], micros[1800]);
}

}  // namespace
}  // namespace disttrain::rpc

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--serve") {
    return disttrain::rpc::Serve(argv[2], std::atoi(argv[3]));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
