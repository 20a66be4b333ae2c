// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace disttrain {

// The one JSON line that a worker leaves in its termination message. From it
// the controller names the root cause, and takes the final figures:
//   {"rank":2,"role":"observer","cause":"...","step":40,"exitCode":1,"timeMs":1767607200000}
struct TerminationMessage {
  int rank = 0;
  std::string role = {};
  // One line, for a person.
  std::string cause = {};
  int64_t step = 0;
  int exit_code = 0;
  // Milliseconds since the epoch when the failure was noticed.
  int64_t time_ms = 0;
  // The rank that this process lost, or whose failure was broadcast to it: set
  // on victims, so that their exit is not taken for the root cause.
  std::optional<int> failed_rank = std::nullopt;
  // The driver's last figures: what the job came to, also for a controller that
  // did not poll in the moment before the end. Finite, or absent.
  std::optional<double> reward = std::nullopt;
  std::optional<double> episode_reward = std::nullopt;
  std::optional<double> loss = std::nullopt;
};

// One line without a newline, <= 4096 bytes (Kubernetes' limit); a longer cause
// is cut at a character's border.
std::string ToJson(const TerminationMessage& message);

// Absent if `text` is not such a line: then it is a foreign program's message.
std::optional<TerminationMessage> ParseTerminationMessage(
    std::string_view text);

}  // namespace disttrain
