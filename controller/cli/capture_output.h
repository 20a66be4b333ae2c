// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace disttrain {

// Runs a program to its end with nothing on standard input, and returns what it
// wrote to standard output (at most 4 MiB). `argv[0]` is a path.
//
// Blocking: until the program has ended; at `deadline` it is killed.
// Errors: NOT_FOUND if there is no such file, UNAVAILABLE if it cannot run,
// ends with another code than 0 (with the last line of its standard error), or
// writes too much; DEADLINE_EXCEEDED.
absl::StatusOr<std::string> CaptureOutput(const std::vector<std::string>& argv,
                                          absl::Time deadline);

}  // namespace disttrain
