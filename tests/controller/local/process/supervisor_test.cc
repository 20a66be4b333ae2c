// SPDX-License-Identifier: Apache-2.0
#include "controller/local/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "controller/local/supervisor_main.h"
#include "fmt/format.h"

extern char** environ;

namespace disttrain {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(60);

// Polls: what is waited for happens in other processes.
template <typename Condition>
bool Eventually(Condition condition, absl::Duration patience = kPatience) {
  const absl::Time deadline = absl::Now() + patience;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Alive(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  if (!std::getline(file, stat)) return false;
  return stat.at(stat.rfind(')') + 2) != 'Z';
}

pid_t PidIn(const std::string& path) {
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid;
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    std::string folder = testing::TempDir() + "/supervisor-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~SupervisorTest() override {
    supervisor_.reset();
    std::filesystem::remove_all(folder_);
  }

  void StartSupervisor(SupervisorOptions options = {}) {
    auto supervisor =
        Supervisor::Start(options, [this](const ProcessEvent& event) {
          const absl::MutexLock lock(&mu_);
          events_.push_back(event);
        });
    ASSERT_TRUE(supervisor.ok()) << supervisor.status();
    supervisor_ = *std::move(supervisor);
  }

  StartProcess Shell(const std::string& id, const std::string& script) const {
    return {.id = id,
            .argv = {"sh", "-c", script},
            .env = {"PATH=/usr/bin:/bin", "DIR=" + folder_,
                    "DISTTRAIN_POD_NAME=" + id},
            .directory = "",
            .log_path = Log(id)};
  }

  void Run(const StartProcess& start) {
    ASSERT_TRUE(supervisor_->Send(start).ok());
  }

  std::string Log(const std::string& id) const { return Path(id + ".log"); }
  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }

  template <typename Event>
  std::optional<Event> Find(const std::string& id) {
    const absl::MutexLock lock(&mu_);
    for (const ProcessEvent& event : events_) {
      const auto* found = std::get_if<Event>(&event);
      if (found != nullptr && found->id == id) return *found;
    }
    return std::nullopt;
  }

  template <typename Event>
  Event Await(const std::string& id) {
    EXPECT_TRUE(Eventually([&] { return Find<Event>(id).has_value(); })) << id;
    return Find<Event>(id).value_or(Event{});
  }

  std::string folder_;
  absl::Mutex mu_;
  std::vector<ProcessEvent> events_;
  std::unique_ptr<Supervisor> supervisor_;
};

TEST_F(SupervisorTest, TellsTheStartAndTheExitCode) {
  StartSupervisor();
  Run(Shell("a", "exit 3"));
  const auto exited = Await<ProcessExited>("a");
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_EQ(exited.signal, 0);
  EXPECT_GT(Await<ProcessStarted>("a").pid, 1);
}

TEST_F(SupervisorTest, TellsTheSignalThatKilledAProcess) {
  StartSupervisor();
  Run(Shell("a", "kill -9 $$"));
  const auto exited = Await<ProcessExited>("a");
  EXPECT_EQ(exited.exit_code, 137);
  EXPECT_EQ(exited.signal, SIGKILL);
}

TEST_F(SupervisorTest, SaysWhyACommandCannotBeExecuted) {
  StartSupervisor();
  std::ofstream(Path("plain")) << "x";
  StartProcess start = Shell("missing", "");
  start.argv = {"/no/such/program"};
  Run(start);
  start.id = "plain";
  start.argv = {Path("plain")};
  Run(start);
  start.id = "nowhere";
  start.argv = {"no-such-command"};
  Run(start);
  start = Shell("folder", "exit 0");
  start.directory = "/no/such/folder";
  Run(start);
  EXPECT_EQ(Await<ProcessStartFailed>("missing").reason,
            "/no/such/program: No such file or directory");
  EXPECT_EQ(Await<ProcessStartFailed>("plain").reason,
            Path("plain") + ": Permission denied");
  EXPECT_EQ(Await<ProcessStartFailed>("nowhere").reason,
            "no-such-command: no such command in PATH=/usr/bin:/bin");
  EXPECT_EQ(Await<ProcessStartFailed>("folder").reason,
            "working directory /no/such/folder: No such file or directory");
}

TEST_F(SupervisorTest, AChildGetsItsEnvironmentItsFolderAndNothingElse) {
  const int leaked = open("/dev/null", O_RDONLY);  // not close-on-exec
  StartSupervisor();
  StartProcess start =
      Shell("a",
            "ls /proc/self/fd | tr '\\n' ' '; pwd; env | sort; cat; "
            "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status");
  start.directory = "/";
  Run(start);
  EXPECT_EQ(Await<ProcessExited>("a").exit_code, 0);
  close(leaked);
  const std::string log = Contents(Log("a"));
  EXPECT_THAT(log, StartsWith("0 1 2 3 /\n"));  // 3: ls reading the folder
  EXPECT_THAT(log, HasSubstr("DISTTRAIN_POD_NAME=a\nPATH=/usr/bin:/bin\n"));
  EXPECT_THAT(log, Not(HasSubstr("HOME=")));
  // 32 and 33 are glibc's own; nobody can set them.
  EXPECT_THAT(log, ContainsRegex("SigIgn:\\s+[0-9a-f]{8}[08]0000000"));
  EXPECT_THAT(log, HasSubstr("SigBlk:\t0000000000000000"));
}

TEST_F(SupervisorTest, KeepsBothOutputsInOrderAlsoWithoutALastNewline) {
  StartSupervisor();
  Run(Shell("a", "echo one; echo two >&2; printf three"));
  Await<ProcessExited>("a");
  EXPECT_EQ(Contents(Log("a")), "one\ntwo\nthree");
}

TEST_F(SupervisorTest, AFloodOfOutputIsWholeAndCostsTheSupervisorNothing) {
  StartSupervisor();
  Run(Shell("a", "head -c 50000000 /dev/zero | tr '\\0' x"));
  EXPECT_EQ(Await<ProcessExited>("a").exit_code, 0);
  EXPECT_EQ(std::filesystem::file_size(Log("a")), 50'000'000u);
}

TEST_F(SupervisorTest, SignalsReachTheWholeGroup) {
  StartSupervisor();
  Run(Shell("a",
            "trap 'exit 5' TERM; sleep 1000 & echo $! > $DIR/child; "
            "touch $DIR/ready; wait"));
  ASSERT_TRUE(Eventually([&] {
    return PidIn(Path("child")) > 0 && std::filesystem::exists(Path("ready"));
  }));
  ASSERT_TRUE(supervisor_->Send(SignalProcess{"a", SIGTERM}).ok());
  EXPECT_EQ(Await<ProcessExited>("a").exit_code, 5);
  EXPECT_TRUE(Eventually([&] { return !Alive(PidIn(Path("child"))); }));
}

TEST_F(SupervisorTest, AStoppedProcessHearsSigterm) {
  StartSupervisor();
  Run(Shell("a", "kill -STOP $$; exit 0"));
  const pid_t pid = Await<ProcessStarted>("a").pid;
  ASSERT_TRUE(Eventually([&] {
    return Contents(fmt::format("/proc/{}/stat", pid)).find(") T ") !=
           std::string::npos;
  }));
  ASSERT_TRUE(supervisor_->Send(SignalProcess{"a", SIGTERM}).ok());
  EXPECT_EQ(Await<ProcessExited>("a").signal, SIGTERM);
}

TEST_F(SupervisorTest, WhatAProcessLeftRunningEndsWithIt) {
  StartSupervisor();
  // One grandchild in its group, one that has left session and parent.
  Run(Shell("a",
            "sleep 1000 & echo $! > $DIR/group; "
            "setsid sh -c 'echo $$ > $DIR/daemon; exec sleep 1000' & "
            "while ! test -s $DIR/daemon; do :; done; exit 0"));
  Run(Shell("b", "sleep 1000 & echo $! > $DIR/other; wait"));
  EXPECT_EQ(Await<ProcessExited>("a").exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return !Alive(PidIn(Path("group"))); }));
  EXPECT_TRUE(Eventually([&] { return !Alive(PidIn(Path("daemon"))); }));
  ASSERT_TRUE(Eventually([&] { return PidIn(Path("other")) > 0; }));
  EXPECT_TRUE(Alive(PidIn(Path("other"))));
  EXPECT_FALSE(Find<ProcessExited>("b").has_value());
}

TEST_F(SupervisorTest, CloseEndsAllAlsoThoseThatIgnoreSigterm) {
  SupervisorOptions options;
  options.grace = absl::Milliseconds(200);
  StartSupervisor(options);
  Run(Shell("polite", "trap 'exit 75' TERM; touch $DIR/p; sleep 1000 & wait"));
  Run(Shell("rude", "trap '' TERM; touch $DIR/r; while :; do sleep 1; done"));
  ASSERT_TRUE(Eventually([&] {
    return std::filesystem::exists(Path("p")) &&
           std::filesystem::exists(Path("r"));
  }));
  supervisor_->Close();
  EXPECT_EQ(Await<ProcessExited>("polite").exit_code, 75);
  EXPECT_EQ(Await<ProcessExited>("rude").signal, SIGKILL);
  EXPECT_EQ(supervisor_->Send(KillAll{}).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(SupervisorTest, KillAllDoesNotWait) {
  SupervisorOptions options;
  options.grace = absl::Hours(1);
  StartSupervisor(options);
  Run(Shell("rude", "trap '' TERM; touch $DIR/r; while :; do sleep 1; done"));
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(Path("r")); }));
  ASSERT_TRUE(supervisor_->Send(KillAll{}).ok());
  EXPECT_EQ(Await<ProcessExited>("rude").signal, SIGKILL);
}

TEST_F(SupervisorTest, RemovesTheScratchFolderAtTheEnd) {
  SupervisorOptions options;
  options.scratch = Path("scratch");
  std::filesystem::create_directories(options.scratch + "/sub");
  StartSupervisor(options);
  supervisor_->Close();
  EXPECT_FALSE(std::filesystem::exists(options.scratch));
}

TEST_F(SupervisorTest, IfItIsKilledItsProcessesEndAndAreReported) {
  StartSupervisor();
  Run(Shell("a",
            "echo $PPID > $DIR/supervisor; sleep 1000 & "
            "echo $! > $DIR/child; wait"));
  const pid_t pid = Await<ProcessStarted>("a").pid;
  ASSERT_TRUE(Eventually([&] { return PidIn(Path("child")) > 0; }));
  kill(PidIn(Path("supervisor")), SIGKILL);
  EXPECT_EQ(Await<ProcessExited>("a").signal, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !Alive(pid); }));
  EXPECT_TRUE(Eventually([&] { return !Alive(PidIn(Path("child"))); }));
}

TEST_F(SupervisorTest, ALauncherKilledBySigkillLeavesNothingBehind) {
  const std::string scratch = Path("scratch");
  std::filesystem::create_directory(scratch);
  const char* argv[] = {"test", "__launcher", folder_.c_str(), nullptr};
  pid_t launcher = 0;
  ASSERT_EQ(posix_spawn(&launcher, "/proc/self/exe", nullptr, nullptr,
                        const_cast<char**>(argv), environ),
            0);
  ASSERT_TRUE(Eventually([&] {
    return PidIn(Path("rank")) > 0 && PidIn(Path("group")) > 0 &&
           PidIn(Path("daemon")) > 0;
  }));
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  // The product's promise: ten seconds.
  EXPECT_TRUE(Eventually(
      [&] {
        return !Alive(PidIn(Path("rank"))) && !Alive(PidIn(Path("group"))) &&
               !Alive(PidIn(Path("daemon")));
      },
      absl::Seconds(10)));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(scratch); }));
}

// What the test above kills: starts a rank that ignores SIGTERM, with one child
// in its group and a daemon, and waits for its death.
int Launcher(const std::string& folder) {
  SupervisorOptions options;
  options.scratch = folder + "/scratch";
  const auto supervisor =
      Supervisor::Start(options, [](const ProcessEvent&) {});
  if (!supervisor.ok()) return 1;
  const StartProcess start{
      .id = "rank",
      .argv = {"/bin/sh", "-c",
               "trap '' TERM; sleep 1000 & echo $! > $DIR/group; "
               "setsid sh -c 'echo $$ > $DIR/daemon; exec sleep 1000' & "
               "echo $$ > $DIR/rank; while :; do sleep 1; done"},
      .env = {"PATH=/usr/bin:/bin", "DIR=" + folder},
      .directory = "",
      .log_path = folder + "/rank.log"};
  if (!(*supervisor)->Send(start).ok()) return 1;
  while (true) pause();
}

}  // namespace
}  // namespace disttrain

int main(int argc, char** argv) {
  if (const auto exit_code = disttrain::RunIfSupervisor(argc, argv)) {
    return *exit_code;
  }
  if (argc == 3 && std::string(argv[1]) == "__launcher") {
    return disttrain::Launcher(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
