// SPDX-License-Identifier: Apache-2.0
#include "controller/local/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "controller/local/unique_fd.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

// What a child could not do, written to its start pipe.
struct StartFailure {
  enum Step : int { kChdir, kExec };
  int step = kExec;
  int error = 0;
};

// Everything a child needs, made before the fork: it may not allocate.
struct ChildPlan {
  std::string path;
  std::string directory;
  std::vector<char*> argv;
  std::vector<char*> envp;
  int null_fd = -1;
  int log_fd = -1;
  int start_pipe = -1;
  int max_fd = 0;
  pid_t parent = 0;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings) {
    pointers.push_back(const_cast<char*>(s.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

bool IsExecutableFile(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// execvp's search, with the child's own PATH.
absl::StatusOr<std::string> FindCommand(const StartProcess& start) {
  if (start.argv.empty() || start.argv[0].empty()) {
    return absl::InvalidArgumentError("the command is empty");
  }
  const std::string& name = start.argv[0];
  if (name.find('/') != std::string::npos) return name;
  const std::string path =
      EnvValue(start.env, "PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (IsExecutableFile(candidate)) return candidate;
    begin = end + 1;
  }
  return absl::NotFoundError(
      fmt::format("{}: no such command in PATH={}", name, path));
}

void CloseOnExecFromThree(int max_fd) {
  if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = 3; fd < max_fd; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void ResetSignals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    sigaction(signal, &standard, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Async-signal-safe calls only.
[[noreturn]] void ExecChild(const ChildPlan& plan) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);  // it died before prctl
  dup2(plan.null_fd, STDIN_FILENO);
  dup2(plan.log_fd, STDOUT_FILENO);
  dup2(plan.log_fd, STDERR_FILENO);
  CloseOnExecFromThree(plan.max_fd);
  ResetSignals();
  StartFailure failure;
  if (!plan.directory.empty() && chdir(plan.directory.c_str()) != 0) {
    failure = {StartFailure::kChdir, errno};
  } else {
    execve(plan.path.c_str(), plan.argv.data(), plan.envp.data());
    failure = {StartFailure::kExec, errno};
  }
  [[maybe_unused]] const ssize_t n =
      write(plan.start_pipe, &failure, sizeof failure);
  _exit(127);
}

absl::StatusOr<UniqueFd> Open(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!fd.ok()) {
    return absl::UnavailableError(
        fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return fd;
}

}  // namespace

absl::StatusOr<ChildProcess> ForkChild(const StartProcess& start) {
  ChildPlan plan;
  ASSIGN_OR_RETURN(plan.path, FindCommand(start));
  ASSIGN_OR_RETURN(const UniqueFd null_fd, Open("/dev/null", O_RDWR));
  ASSIGN_OR_RETURN(const UniqueFd log_fd,
                   Open(start.log_path, O_WRONLY | O_CREAT | O_APPEND));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::ResourceExhaustedError(
        fmt::format("pipe: {}", std::strerror(errno)));
  }
  UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  plan.directory = start.directory;
  plan.argv = Pointers(start.argv);
  plan.envp = Pointers(start.env);
  plan.null_fd = null_fd.get();
  plan.log_fd = log_fd.get();
  plan.start_pipe = write_end.get();
  plan.max_fd =
      static_cast<int>(std::clamp(sysconf(_SC_OPEN_MAX), 256L, 65536L));
  plan.parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) ExecChild(plan);
  if (pid < 0) {
    return absl::ResourceExhaustedError(
        fmt::format("fork: {}", std::strerror(errno)));
  }
  return ChildProcess{pid, read_end.release()};
}

std::optional<std::string> ReadStartFailure(int start_pipe,
                                            const StartProcess& start) {
  StartFailure failure;
  if (read(start_pipe, &failure, sizeof failure) != sizeof failure) {
    return std::nullopt;
  }
  return fmt::format("{}: {}",
                     failure.step == StartFailure::kChdir
                         ? "working directory " + start.directory
                         : start.argv[0],
                     std::strerror(failure.error));
}

std::optional<std::string> EnvValue(const std::vector<std::string>& env,
                                    std::string_view name) {
  for (const std::string& entry : env) {
    if (entry.size() > name.size() && entry[name.size()] == '=' &&
        entry.compare(0, name.size(), name) == 0) {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace disttrain
