// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using testing::Echo;
using ::testing::ElementsAre;
using testing::Everything;
using testing::Thrower;

// Writes down what it sees, in order.
class Journal {
 public:
  void Write(const std::string& line) {
    absl::MutexLock lock(&mu_);
    lines_.push_back(line);
  }
  std::vector<std::string> Lines() {
    absl::MutexLock lock(&mu_);
    return lines_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

class FakeRecorder : public CallRecorder {
 public:
  explicit FakeRecorder(Journal& journal) : journal_(journal) {}

  std::unique_ptr<RecordedCall> OnRequest(const Peer& callee,
                                          std::string_view method,
                                          std::vector<at::Tensor>& arguments,
                                          std::string& note) override {
    journal_.Write("request to " + std::to_string(callee.rank) + " " +
                   std::string(method.substr(method.rfind(':') + 1)));
    for (at::Tensor& tensor : arguments) tensor = tensor * 2;
    note = "graph 7";
    return std::make_unique<Recorded>(journal_);
  }

 private:
  class Recorded : public RecordedCall {
   public:
    explicit Recorded(Journal& journal) : journal_(journal) {}
    void OnReply(std::string_view note,
                 std::vector<at::Tensor>& results) override {
      journal_.Write("reply with " + std::string(note));
      for (at::Tensor& tensor : results) tensor = tensor + 1;
    }
    void OnError() override { journal_.Write("error"); }

   private:
    Journal& journal_;
  };

  Journal& journal_;
};

class FakeReceiver : public CallReceiver {
 public:
  explicit FakeReceiver(Journal& journal) : journal_(journal) {}

  std::unique_ptr<ServedRecord> OnRequest(
      const Peer& caller, std::string_view, std::string_view note,
      std::vector<at::Tensor>& arguments) override {
    journal_.Write("served for " + std::to_string(caller.rank) + " with " +
                   std::string(note));
    for (at::Tensor& tensor : arguments) tensor = tensor * 3;
    return std::make_unique<Served>(journal_);
  }

 private:
  class Served : public ServedRecord {
   public:
    explicit Served(Journal& journal) : journal_(journal) {}
    void BeforeMethod() override { journal_.Write("before"); }
    void AfterMethod() override { journal_.Write("after"); }
    std::string OnReply(std::vector<at::Tensor>& results) override {
      for (at::Tensor& tensor : results) tensor = tensor * 5;
      return "graph 8";
    }

   private:
    Journal& journal_;
  };

  Journal& journal_;
};

TEST(CallRecorder, SeesAndReplacesTensorsOnBothSides) {
  Journal journal;
  FakeReceiver receiver(journal);
  FakeRecorder recorder(journal);
  Job job(2, Everything(),
          [&](AgentOptions& options) { options.call_receiver = &receiver; });
  const Agent::Scope scope(job.agent(0));
  const auto echo = Remote<Echo>(1);
  const at::Tensor ones = at::ones({2}, at::kFloat);
  {
    const CallRecorder::Scope recording(&recorder);
    EXPECT_TRUE(
        at::equal(echo.Sync(&Echo::Tensor, ones), ones * 2 * 3 * 5 + 1));
  }
  EXPECT_EQ(CallRecorder::Current(), nullptr);
  EXPECT_THAT(
      journal.Lines(),
      ElementsAre("request to 1 Echo.Tensor", "served for 0 with graph 7",
                  "before", "after", "reply with graph 8"));
  // Without a recorder nobody is asked.
  EXPECT_TRUE(at::equal(echo.Sync(&Echo::Tensor, ones), ones));
  EXPECT_EQ(journal.Lines().size(), 5U);
}

TEST(CallRecorder, IsToldOfErrors) {
  Journal journal;
  FakeRecorder recorder(journal);
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto thrower = Remote<Thrower>(1);
  const CallRecorder::Scope recording(&recorder);
  EXPECT_THROW(thrower.Sync(&Thrower::Runtime, "x"), RemoteException);
  EXPECT_THAT(journal.Lines(),
              ElementsAre("request to 1 Thrower.Runtime", "error"));
}

class FakeObserver : public CallObserver {
 public:
  explicit FakeObserver(Journal& journal) : journal_(journal) {}
  void OnCallDone(const CallRecord& record) override {
    EXPECT_GE(record.duration, absl::ZeroDuration());
    journal_.Write(
        (record.side == CallRecord::Side::kCaller ? "to " : "from ") +
        std::string(record.peer_role) + " " +
        std::string(record.method.substr(record.method.rfind(':') + 1)) + " " +
        std::string(Name(record.outcome)));
  }

 private:
  Journal& journal_;
};

TEST(CallObserver, SeesEachCallOnceOnEachSide) {
  Journal caller;
  Journal callee;
  FakeObserver caller_observer(caller);
  FakeObserver callee_observer(callee);
  Job job(2, Everything(), [&](AgentOptions& options) {
    options.observer =
        options.self.rank == 0 ? &caller_observer : &callee_observer;
  });
  const Agent::Scope scope(job.agent(0));
  const auto thrower = Remote<Thrower>(1);
  EXPECT_THROW(thrower.Sync(&Thrower::Runtime, "x"), RemoteException);
  EXPECT_THAT(caller.Lines(),
              ElementsAre("to observer Thrower ok",
                          "to observer Thrower.Runtime remote_exception"));
  EXPECT_THAT(callee.Lines(),
              ElementsAre("from agent Thrower ok",
                          "from agent Thrower.Runtime remote_exception"));
}

}  // namespace
}  // namespace disttrain::rpc
