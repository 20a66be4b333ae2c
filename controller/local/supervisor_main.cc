// SPDX-License-Identifier: Apache-2.0
#include "controller/local/supervisor_main.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "controller/local/process_table.h"
#include "controller/local/supervisor_protocol.h"
#include "controller/local/unique_fd.h"
#include "proto/contract/exit_code.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

constexpr int kLauncherSocket = 3;

class SupervisorLoop {
 public:
  SupervisorLoop(int launcher, int signals, absl::Duration grace)
      : launcher_(launcher), signals_(signals), grace_(grace) {}

  // Until the launcher is gone and no descendant is left.
  void Run() {
    while (!(ending_ && processes_.empty()) && absl::Now() < kill_at_) Step();
    processes_.KillDescendants();
    fcntl(launcher_, F_SETFL, 0);  // the last events may wait for the launcher
    SendPending();
  }

 private:
  void Step() {
    std::vector<pollfd> polled = {{signals_, POLLIN, 0}};
    const short events = static_cast<short>((ending_ ? 0 : POLLIN) |
                                            (outgoing_.empty() ? 0 : POLLOUT));
    polled.push_back({events == 0 ? -1 : launcher_, events, 0});
    for (const int pipe : processes_.StartPipes()) {
      polled.push_back({pipe, POLLIN, 0});
    }
    poll(polled.data(), polled.size(), PollTimeout());
    // Starts first: an end is never told before its start.
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents != 0) processes_.FinishStart(polled[i].fd);
    }
    if (polled[0].revents != 0) TakeSignals();
    if ((polled[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) Receive();
    SendPending();
  }

  int PollTimeout() const {
    if (!ending_) return -1;
    const int64_t left = absl::ToInt64Milliseconds(kill_at_ - absl::Now()) + 1;
    return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
  }

  void TakeSignals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) End();
    }
    processes_.Reap();
  }

  void Receive() {
    char bytes[1 << 16];
    const ssize_t n = read(launcher_, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      End();
      return;
    }
    reader_.Append({bytes, static_cast<size_t>(n)});
    while (!ending_) {
      const auto payload = reader_.Next();
      if (!payload.ok()) return Refuse(payload.status());
      if (!payload->has_value()) return;
      const auto command = DecodeCommand(**payload);
      if (!command.ok()) return Refuse(command.status());
      Obey(*command);
    }
  }

  void Obey(const SupervisorCommand& command) {
    if (const auto* start = std::get_if<StartProcess>(&command)) {
      processes_.Start(*start);
    } else if (const auto* sent = std::get_if<SignalProcess>(&command)) {
      processes_.Signal(sent->id, sent->signal);
      if (sent->signal == SIGTERM) processes_.Signal(sent->id, SIGCONT);
    } else {
      End();
      kill_at_ = absl::Now();
    }
  }

  void Refuse(const absl::Status& status) {
    std::fprintf(stderr, "dtj supervisor: %s\n", Message(status).c_str());
    End();
  }

  // No more starts; SIGTERM now, SIGKILL after the grace.
  void End() {
    if (ending_) return;
    ending_ = true;
    kill_at_ = absl::Now() + grace_;
    processes_.SignalAll(SIGTERM);
  }

  // A launcher that is gone takes no events; that is no reason to stop.
  void SendPending() {
    while (!outgoing_.empty()) {
      const ssize_t n =
          send(launcher_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) {
        outgoing_.clear();
        return;
      }
      outgoing_.erase(0, static_cast<size_t>(n));
    }
  }

  const int launcher_;
  const int signals_;
  const absl::Duration grace_;
  // Two events a process, so its size is bounded by the launcher's starts.
  std::string outgoing_;
  ProcessTable processes_{
      [this](const ProcessEvent& event) { outgoing_ += Encode(event); }};
  FrameReader reader_;
  bool ending_ = false;
  absl::Time kill_at_ = absl::InfiniteFuture();
};

// Blocked, so that they arrive at the returned descriptor.
UniqueFd SignalDescriptor() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    sigaddset(&taken, signal);
  }
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return UniqueFd(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
}

int Supervise(absl::Duration grace, const std::string& scratch) {
  const UniqueFd signals = SignalDescriptor();
  if (!signals.ok() || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
      fcntl(kLauncherSocket, F_SETFL, O_NONBLOCK) != 0 ||
      fcntl(kLauncherSocket, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "dtj supervisor: cannot start: %s\n",
                 std::strerror(errno));
    return static_cast<int>(ExitCode::kBug);
  }
  SupervisorLoop(kLauncherSocket, signals.get(), grace).Run();
  std::error_code error;
  if (!scratch.empty()) std::filesystem::remove_all(scratch, error);
  if (error) {
    std::fprintf(stderr, "dtj supervisor: %s: %s\n", scratch.c_str(),
                 error.message().c_str());
  }
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace

std::optional<int> RunIfSupervisor(int argc, char** argv) {
  if (argc < 3 || std::string_view(argv[1]) != kSuperviseArgument) {
    return std::nullopt;
  }
  const std::string_view text = argv[2];
  int64_t grace_ms = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), grace_ms);
  if (error != std::errc() || end != text.data() + text.size()) {
    return static_cast<int>(ExitCode::kUsage);
  }
  return Supervise(absl::Milliseconds(grace_ms), argc > 3 ? argv[3] : "");
}

}  // namespace disttrain
