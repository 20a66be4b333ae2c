// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/capture_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr size_t kMaxOutput = size_t{4} << 20;

// One end of a pipe that a child writes and we read.
struct Capture {
  int fd = -1;  // -1: ended
  std::string text;
};

// The child's two outputs, and the child; ends both.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    for (Capture& capture : captures_) {
      if (capture.fd >= 0) close(capture.fd);
    }
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
  }

  absl::Status Start(const std::vector<std::string>& argv) {
    std::array<std::array<int, 2>, 2> pipes;
    for (size_t i = 0; i < pipes.size(); ++i) {
      if (pipe2(pipes[i].data(), O_CLOEXEC) != 0) {
        const int error = errno;
        if (i == 1) close(pipes[0][1]);
        return absl::UnavailableError(
            fmt::format("pipe: {}", std::strerror(error)));
      }
      captures_[i].fd = pipes[i][0];
    }
    const int error = Spawn(argv, pipes[0][1], pipes[1][1]);
    close(pipes[0][1]);
    close(pipes[1][1]);
    if (error == 0) return absl::OkStatus();
    pid_ = 0;
    const std::string message =
        fmt::format("cannot run {}: {}", argv[0], std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(message)
                           : absl::UnavailableError(message);
  }

  // Reads both outputs to their ends.
  absl::Status Read(absl::Time deadline) {
    while (captures_[0].fd >= 0 || captures_[1].fd >= 0) {
      std::array<pollfd, 2> polled{};
      for (size_t i = 0; i < polled.size(); ++i) {
        polled[i] = {captures_[i].fd, POLLIN, 0};
      }
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError("it has not ended in time");
      }
      const int64_t wait =
          std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1, 60'000);
      if (poll(polled.data(), polled.size(), static_cast<int>(wait)) < 0 &&
          errno != EINTR) {
        return absl::UnavailableError(
            fmt::format("poll: {}", std::strerror(errno)));
      }
      for (size_t i = 0; i < polled.size(); ++i) {
        if (polled[i].revents != 0) RETURN_IF_ERROR(ReadSome(captures_[i]));
      }
    }
    return absl::OkStatus();
  }

  // The child's status as waitpid gives it.
  int Wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  std::string& output() { return captures_[0].text; }
  const std::string& errors() const { return captures_[1].text; }

 private:
  int Spawn(const std::vector<std::string>& argv, int out, int err) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, err, 2);
    std::vector<char*> arguments;
    arguments.reserve(argv.size() + 1);
    for (const std::string& arg : argv) {
      arguments.push_back(const_cast<char*>(arg.c_str()));
    }
    arguments.push_back(nullptr);
    const int error = posix_spawn(&pid_, argv[0].c_str(), &actions, nullptr,
                                  arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }

  static absl::Status ReadSome(Capture& capture) {
    std::array<char, 16384> buffer;
    const ssize_t size = read(capture.fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) return absl::OkStatus();
    if (size <= 0) {
      close(capture.fd);
      capture.fd = -1;
      return absl::OkStatus();
    }
    capture.text.append(buffer.data(), static_cast<size_t>(size));
    if (capture.text.size() > kMaxOutput) {
      return absl::UnavailableError(
          fmt::format("it wrote more than {} MiB", kMaxOutput >> 20));
    }
    return absl::OkStatus();
  }

  pid_t pid_ = 0;
  std::array<Capture, 2> captures_;
};

std::string LastLine(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const size_t start = text.rfind('\n');
  return Printable(start == std::string::npos ? text : text.substr(start + 1));
}

}  // namespace

absl::StatusOr<std::string> CaptureOutput(const std::vector<std::string>& argv,
                                          absl::Time deadline) {
  Child child;
  RETURN_IF_ERROR(child.Start(argv));
  RETURN_IF_ERROR(child.Read(deadline));
  const int status = child.Wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return std::move(child.output());
  }
  const std::string how =
      WIFSIGNALED(status)
          ? fmt::format("it was ended by signal {}", WTERMSIG(status))
          : fmt::format("it ended with code {}", WEXITSTATUS(status));
  const std::string said = LastLine(child.errors());
  return absl::UnavailableError(said.empty() ? how : how + ": " + said);
}

}  // namespace disttrain
