// SPDX-License-Identifier: Apache-2.0
#include "controller/local/process_table.h"

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "controller/local/child_process.h"
#include "controller/local/process_tree.h"
#include "fmt/format.h"
#include "proto/contract/env.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

// A group that does not exist yet (the child has not called setsid) has its
// leader signalled.
void SignalGroup(pid_t pid, int signal) {
  if (kill(-pid, signal) != 0 && errno == ESRCH) kill(pid, signal);
}

ProcessExited Exited(const std::string& id, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return {.id = id, .exit_code = 128 + signal, .signal = signal};
  }
  return {.id = id, .exit_code = WEXITSTATUS(wait_status), .signal = 0};
}

// The pod's name, by which a daemon that left its session is recognised.
std::string CookieOf(const StartProcess& start) {
  const auto name = EnvValue(start.env, env::kPodName);
  return name.has_value() ? fmt::format("{}={}", env::kPodName, *name) : "";
}

}  // namespace

void ProcessTable::Start(const StartProcess& start) {
  const absl::StatusOr<ChildProcess> child = ForkChild(start);
  if (!child.ok()) {
    on_event_(ProcessStartFailed{start.id, Message(child.status())});
    return;
  }
  processes_[child->pid] = Process{start, UniqueFd(child->start_pipe)};
}

void ProcessTable::Signal(const std::string& id, int signal) {
  for (const auto& [pid, process] : processes_) {
    if (process.start.id == id) SignalGroup(pid, signal);
  }
}

void ProcessTable::SignalAll(int signal) {
  for (const auto& [pid, process] : processes_) {
    SignalGroup(pid, signal);
    // A stopped process would sleep through it.
    if (signal == SIGTERM) SignalGroup(pid, SIGCONT);
  }
}

std::vector<int> ProcessTable::StartPipes() const {
  std::vector<int> pipes;
  for (const auto& [pid, process] : processes_) {
    if (process.start_pipe.ok()) pipes.push_back(process.start_pipe.get());
  }
  return pipes;
}

void ProcessTable::FinishStart(int start_pipe) {
  for (auto& [pid, process] : processes_) {
    if (process.start_pipe.get() == start_pipe) {
      FinishStart(pid, process);
      return;
    }
  }
}

void ProcessTable::FinishStart(pid_t pid, Process& process) {
  const auto failure =
      ReadStartFailure(process.start_pipe.get(), process.start);
  process.start_pipe.reset();
  if (!failure.has_value()) {
    on_event_(ProcessStarted{process.start.id, pid});
    return;
  }
  on_event_(ProcessStartFailed{process.start.id, *failure});
  processes_.erase(pid);  // its end is reaped as nobody's
}

void ProcessTable::Reap() {
  bool any = false;
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      break;
    }
    any = true;
    const pid_t pid = info.si_pid;
    auto found = processes_.find(pid);
    if (found != processes_.end() && found->second.start_pipe.ok()) {
      FinishStart(pid, found->second);
      found = processes_.find(pid);
    }
    // While it is a zombie its group's number cannot be taken by another.
    if (found != processes_.end()) kill(-pid, SIGKILL);
    int wait_status = 0;
    waitpid(pid, &wait_status, 0);
    if (found == processes_.end()) continue;
    ended_.push_back({pid, CookieOf(found->second.start)});
    const std::string id = found->second.start.id;
    processes_.erase(found);
    on_event_(Exited(id, wait_status));
  }
  if (any) KillLeftovers();
}

void ProcessTable::KillLeftovers() {
  if (ended_.empty()) return;
  for (const pid_t pid : ChildrenOfSelf()) {
    if (processes_.contains(pid)) continue;
    const pid_t session = SessionOf(pid);
    // The session's number may belong to a new process by now.
    if (processes_.contains(session)) continue;
    for (const Ended& ended : ended_) {
      if (session == ended.session ||
          (!ended.cookie.empty() && HasEnvironmentEntry(pid, ended.cookie))) {
        kill(pid, SIGKILL);
        break;
      }
    }
  }
}

void ProcessTable::KillDescendants() {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  constexpr timespec kTick{.tv_sec = 0, .tv_nsec = 20'000'000};
  const std::time_t deadline = std::time(nullptr) + 5;
  do {
    SignalAll(SIGKILL);
    for (const pid_t pid : ChildrenOfSelf()) kill(pid, SIGKILL);
    Reap();
    if (ChildrenOfSelf().empty()) return;
    sigtimedwait(&child_signal, nullptr, &kTick);
  } while (std::time(nullptr) < deadline);
}

}  // namespace disttrain
