// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/time/clock.h"
#include "controller/cli/logs_command.h"
#include "controller/local/supervisor_main.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/runtime/signals.h"

namespace disttrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <typename Condition>
bool Eventually(Condition condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Jobs without a program, whose ranks are shell scripts: no worker is needed.
class RunCommandTest : public testing::Test {
 protected:
  RunCommandTest() {
    std::string folder = testing::TempDir() + "/run-XXXXXX";
    folder_ = mkdtemp(folder.data());
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  ~RunCommandTest() override { std::filesystem::remove_all(folder_); }

  // One agent and two observers, all running `script`.
  void Manifest(const std::string& script, const std::string& more = "") const {
    const nlohmann::json command = {"/bin/sh", "-c", script};
    const std::string pod = fmt::format(
        "template: {{spec: {{containers: [{{name: w, command: {}, env: "
        "[{{name: "
        "DIR, value: {}}}]}}]}}}}",
        command.dump(), folder_);
    std::ofstream(Path("job.yaml"))
        << "apiVersion: disttrain.dev/v1alpha1\nkind: DistTrainingJob\n"
        << "metadata: {name: shell}\nspec:\n  roles:\n"
        << "  - {name: agent, " << pod << "}\n"
        << "  - {name: observer, replicas: 2, " << pod << "}\n"
        << more;
  }

  int Run(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"-f", Path("job.yaml")};
    args.insert(args.end(), more.begin(), more.end());
    Streams streams{.in = in_, .out = out_, .err = err_};
    return RunCommand(args, streams);
  }

  int Logs(const std::vector<std::string>& args) {
    out_.str("");
    Streams streams{.in = in_, .out = out_, .err = err_};
    return LogsCommand(args, streams);
  }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(Path(name));
  }
  std::string LastLine() const {
    std::string text = out_.str();
    if (!text.empty()) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  }

  std::string folder_;
  std::istringstream in_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(RunCommandTest, EveryRankKnowsItsPlaceAndItsLinesAreShownOnce) {
  Manifest(
      "echo \"$RANK of $WORLD_SIZE is $ROLE_NAME $DISTTRAIN_ROLE_INDEX\"; "
      "printf 'no newline'");
  EXPECT_EQ(Run(), 0) << out_.str() << err_.str();
  const std::string out = out_.str();
  EXPECT_EQ(Count(out, "[agent 0] 0 of 3 is agent 0\n"), 1) << out;
  EXPECT_EQ(Count(out, "[observer 0] 1 of 3 is observer 0\n"), 1) << out;
  EXPECT_EQ(Count(out, "[observer 1] 2 of 3 is observer 1\n"), 1) << out;
  EXPECT_EQ(Count(out, "] no newline\n"), 3) << out;
  EXPECT_THAT(out, AllOf(HasSubstr("shell: Complete – AllRanksSucceeded in "),
                         HasSubstr(", 1 attempt")));
}

TEST_F(RunCommandTest, AFailedRunEndsWithTheRootCause) {
  Manifest(
      "if test $RANK = 1; then printf 'out of data' > "
      "$DISTTRAIN_TERMINATION_MESSAGE_PATH; exit 3; fi; "
      "trap 'exit 75' TERM; sleep 1000 & wait",
      "  failurePolicy: {maxRestarts: 0}\n");
  EXPECT_EQ(Run(), 1) << out_.str();
  EXPECT_EQ(LastLine(),
            "root cause: rank 1 (observer, pod shell-observer-0): exit code 3: "
            "out of data");
}

TEST_F(RunCommandTest, ACommandThatDoesNotExistIsTheRootCause) {
  Manifest("true", "  failurePolicy: {maxRestarts: 0}\n");
  EXPECT_EQ(
      Run({"--set",
           "roles[1].template.spec.containers[0].command=[\"/no/such\"]"}),
      1)
      << out_.str() << err_.str();
  EXPECT_THAT(LastLine(),
              AllOf(HasSubstr("root cause: "), HasSubstr("observer"),
                    HasSubstr("/no/such: No such file or directory")));
}

TEST_F(RunCommandTest, AFailedGangIsRestartedWithTheNextAttempt) {
  Manifest(
      "echo attempt $DISTTRAIN_ATTEMPT; "
      "test $DISTTRAIN_ATTEMPT = 1 || test $RANK != 2");
  EXPECT_EQ(Run({"-o", "json"}), 0) << err_.str();
  const auto status = nlohmann::json::parse(out_.str());
  EXPECT_EQ(status["phase"], "Complete");
  EXPECT_EQ(status["attempt"], 1);
  EXPECT_EQ(status["restarts"]["counted"], 1);
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("[observer 1] attempt 1"),
                                HasSubstr("2 attempts")));
}

TEST_F(RunCommandTest, ABadManifestIsRefusedBeforeAnythingStarts) {
  Manifest("true", "  no_such_field: 1\n");
  EXPECT_EQ(Run(), 2);
  EXPECT_THAT(err_.str(), HasSubstr("no_such_field"));
  EXPECT_FALSE(Exists("disttrain"));
}

TEST_F(RunCommandTest, SigintLetsTheRanksEndWell) {
  Manifest(
      "trap 'touch $DIR/end-$RANK; exit 75' TERM; touch $DIR/up-$RANK; "
      "sleep 1000 & wait");
  std::thread person([this] {
    EXPECT_TRUE(Eventually(
        [&] { return Exists("up-0") && Exists("up-1") && Exists("up-2"); }));
    kill(getpid(), SIGINT);
  });
  EXPECT_EQ(Run(), 130) << out_.str();
  person.join();
  EXPECT_TRUE(Exists("end-0") && Exists("end-1") && Exists("end-2"));
  EXPECT_THAT(out_.str(), HasSubstr("stopping the job"));
}

TEST_F(RunCommandTest, ASecondSignalKills) {
  Manifest(
      "trap 'touch $DIR/ignored-$RANK' TERM; touch $DIR/up-$RANK; "
      "while :; do sleep 1; done");
  std::thread person([this] {
    EXPECT_TRUE(Eventually(
        [&] { return Exists("up-0") && Exists("up-1") && Exists("up-2"); }));
    kill(getpid(), SIGTERM);
    EXPECT_TRUE(Eventually([&] { return Exists("ignored-0"); }));
    kill(getpid(), SIGTERM);
  });
  EXPECT_EQ(Run(), 143) << out_.str();
  person.join();
}

TEST_F(RunCommandTest, StopsWhenNobodyReadsAnyMore) {
  Manifest("trap 'exit 75' TERM; sleep 1000 & wait");
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(Run(), 128 + SIGPIPE);
}

TEST_F(RunCommandTest, QuietShowsTheEndOnly) {
  Manifest("echo hello");
  EXPECT_EQ(Run({"--quiet", "--no-progress", "--log-dir", Path("logs")}), 0);
  EXPECT_THAT(out_.str(),
              AllOf(Not(HasSubstr("hello")), HasSubstr("Complete")));
  EXPECT_TRUE(Exists("logs/shell-agent-0.log"));
}

TEST_F(RunCommandTest, LogsShowsTheRootCauseOfTheLastRunFirst) {
  Manifest("echo \"I am $RANK\"; test $RANK != 2",
           "  failurePolicy: {maxRestarts: 0}\n");
  ASSERT_EQ(Run(), 1);
  EXPECT_EQ(Logs({}), 0) << err_.str();
  EXPECT_EQ(out_.str().find("root cause: rank 2"), 0u) << out_.str();
  EXPECT_EQ(Count(out_.str(), "[agent 0] I am 0"), 1);
  EXPECT_EQ(Logs({"shell", "--rank", "1"}), 0);
  EXPECT_EQ(out_.str(), "[observer 0] I am 1\n");
  EXPECT_EQ(Logs({"--role", "agent", "-f"}), 0);
  EXPECT_EQ(out_.str(), "[agent 0] I am 0\n");
}

TEST_F(RunCommandTest, LogsOfAnUnknownJobNamesThoseThatAreThere) {
  EXPECT_EQ(Logs({}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("there are no runs yet"));
  Manifest("true");
  ASSERT_EQ(Run(), 0);
  EXPECT_EQ(Logs({"shel"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("no run of shel; did you mean shell?"));
  EXPECT_EQ(Logs({"--rank", "x"}), 2);
  EXPECT_EQ(Logs({"--rank", "9"}), 1);
}

}  // namespace
}  // namespace disttrain

int main(int argc, char** argv) {
  if (const auto exit_code = disttrain::RunIfSupervisor(argc, argv)) {
    return *exit_code;
  }
  disttrain::BlockSignals();  // also for the threads that send them
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
