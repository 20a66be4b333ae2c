// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

// What the launcher (`dtj run`) and its supervisor process say to each other
// over their socket pair: frames of a 4-byte big-endian length and one CBOR
// object. CBOR and not JSON text, because environments and paths need not be
// UTF-8.
namespace disttrain {

// A longer frame is refused before any memory is spent on it.
inline constexpr size_t kMaxSupervisorFrame = 4 << 20;

// Launcher -> supervisor: start one process in a session of its own.
struct StartProcess {
  std::string id;  // chosen by the launcher, unique in the run
  std::vector<std::string>
      argv;                      // argv[0] without '/': looked up in env's PATH
  std::vector<std::string> env;  // "NAME=value", all of it
  std::string directory;         // "": the launcher's
  std::string log_path;  // gets standard output and standard error, appended
};

// Launcher -> supervisor: send `signal` to the whole group of process `id`.
// Unknown or finished ids are ignored: the process may just have ended.
struct SignalProcess {
  std::string id;
  int signal = 0;
};

// Launcher -> supervisor: kill everything at once; nothing more is started.
struct KillAll {};

using SupervisorCommand = std::variant<StartProcess, SignalProcess, KillAll>;

// Supervisor -> launcher.
struct ProcessStarted {
  std::string id;
  pid_t pid = 0;  // also the process group and the session
};

struct ProcessStartFailed {
  std::string id;
  std::string reason;  // "/bin/x: permission denied"
};

struct ProcessExited {
  std::string id;
  int exit_code = 0;  // 128 + signal if it died of a signal
  int signal = 0;     // 0: it exited by itself
};

using ProcessEvent =
    std::variant<ProcessStarted, ProcessStartFailed, ProcessExited>;

// One frame, length included.
std::string Encode(const SupervisorCommand& command);
std::string Encode(const ProcessEvent& event);

// `payload` is a frame without its length. INVALID_ARGUMENT if it is not such
// an object.
absl::StatusOr<SupervisorCommand> DecodeCommand(std::string_view payload);
absl::StatusOr<ProcessEvent> DecodeEvent(std::string_view payload);

// Cuts a byte stream into frames. Holds one incomplete frame at most.
class FrameReader {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }

  // The next whole payload; absent: more bytes are needed. INVALID_ARGUMENT if
  // the announced length is above kMaxSupervisorFrame; then the stream is lost.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  std::string buffer_;
};

}  // namespace disttrain
