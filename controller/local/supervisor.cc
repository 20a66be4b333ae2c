// SPDX-License-Identifier: Apache-2.0
#include "controller/local/supervisor.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <variant>

#include "controller/local/supervisor_main.h"
#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "proto/runtime/signals.h"
#include "proto/runtime/status.h"

extern char** environ;

namespace disttrain {
namespace {

absl::Status ErrnoError(const char* what, int error) {
  return absl::UnavailableError(
      fmt::format("supervisor: {}: {}", what, std::strerror(error)));
}

// In a session of its own, so that the terminal's signals reach the launcher
// alone; descriptors 0 to 2 and the socket, nothing else.
absl::StatusOr<pid_t> Spawn(const SupervisorOptions& options, int socket) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, socket, 3);
  posix_spawn_file_actions_addclosefrom_np(&files, 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const std::string grace =
      fmt::format("{}", absl::ToInt64Milliseconds(options.grace));
  const char* argv[] = {"dtj", kSuperviseArgument, grace.c_str(),
                        options.scratch.c_str(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, options.executable.c_str(), &files,
                                &attributes, const_cast<char**>(argv), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return ErrnoError(options.executable.c_str(), error);
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Start(
    const SupervisorOptions& options,
    std::function<void(const ProcessEvent&)> on_event) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoError("socketpair", errno);
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(options, theirs.get()));
  return std::unique_ptr<Supervisor>(
      new Supervisor(std::move(ours), pid, std::move(on_event)));
}

Supervisor::Supervisor(UniqueFd socket, pid_t pid,
                       std::function<void(const ProcessEvent&)> on_event)
    : socket_(std::move(socket)),
      pid_(pid),
      on_event_(std::move(on_event)),
      reader_([this] { Read(); }) {}

Supervisor::~Supervisor() { Close(); }

absl::Status Supervisor::Send(const SupervisorCommand& command) {
  const std::string frame = Encode(command);
  if (frame.size() > kMaxSupervisorFrame) {
    return absl::InvalidArgumentError(
        fmt::format("command and environment take {} bytes, the limit is {}",
                    frame.size(), kMaxSupervisorFrame));
  }
  const absl::MutexLock lock(&send_mu_);
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t n = send(socket_.get(), frame.data() + sent,
                           frame.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError("send", errno);
    sent += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

void Supervisor::Close() {
  if (!reader_.joinable()) return;
  shutdown(socket_.get(), SHUT_WR);
  reader_.join();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Supervisor::Read() {
  NameThread("supervisor");
  FrameReader frames;
  char bytes[1 << 16];
  while (true) {
    const ssize_t n = read(socket_.get(), bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    frames.Append({bytes, static_cast<size_t>(n)});
    for (auto payload = frames.Next(); payload.ok() && payload->has_value();
         payload = frames.Next()) {
      const auto event = DecodeEvent(**payload);
      DISTTRAIN_CHECK(event.ok());  // it runs this very program
      Handle(*event);
    }
  }
  KillOrphans();
}

void Supervisor::Handle(const ProcessEvent& event) {
  {
    const absl::MutexLock lock(&mu_);
    if (const auto* started = std::get_if<ProcessStarted>(&event)) {
      running_[started->id] = started->pid;
    } else if (const auto* exited = std::get_if<ProcessExited>(&event)) {
      running_.erase(exited->id);
    }
  }
  on_event_(event);
}

void Supervisor::KillOrphans() {
  std::map<std::string, pid_t> orphans;
  {
    const absl::MutexLock lock(&mu_);
    orphans.swap(running_);
  }
  for (const auto& [id, pid] : orphans) {
    kill(-pid, SIGKILL);
    on_event_(ProcessExited{.id = id, .exit_code = 137, .signal = SIGKILL});
  }
}

}  // namespace disttrain
