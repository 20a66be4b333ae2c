// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/local/supervisor_protocol.h"

// Starting one process, as the supervisor does it.
namespace disttrain {

struct ChildProcess {
  pid_t pid = 0;
  // Readable once the child has called exec (end of file) or could not (see
  // ReadStartFailure). The caller closes it.
  int start_pipe = -1;
};

// Forks a child in a new session with standard input from /dev/null, both
// outputs appended to `start.log_path`, no other descriptor, default signal
// handling, and SIGKILL should this process die. Between fork and exec the
// child makes async-signal-safe calls only.
// Errors: the command cannot be found or opened, the log cannot be written,
// no process can be made; they name the path and the cause.
// Threads: the calling process must have one thread: PR_SET_PDEATHSIG follows
// the thread that forked.
absl::StatusOr<ChildProcess> ForkChild(const StartProcess& start);

// What the child wrote to its start pipe: why it could not run
// `start.argv[0]`; absent: it runs. Reads without blocking; call it when the
// pipe is readable or the child is dead.
std::optional<std::string> ReadStartFailure(int start_pipe,
                                            const StartProcess& start);

// The value of `name` in "NAME=value" entries; absent if it is not there.
std::optional<std::string> EnvValue(const std::vector<std::string>& env,
                                    std::string_view name);

}  // namespace disttrain
