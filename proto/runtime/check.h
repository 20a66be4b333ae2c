// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace disttrain {

// Writes "file:line: check failed: condition" to standard error and ends the
// process with ExitCode::kBug.
[[noreturn]] void CheckFailed(const char* file, int line,
                              const char* condition);

}  // namespace disttrain

// For invariants that only our own code can break; never for input of any kind.
#define DISTTRAIN_CHECK(condition)    \
  ((condition) ? static_cast<void>(0) \
               : ::disttrain::CheckFailed(__FILE__, __LINE__, #condition))
