// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace disttrain {

// Kubernetes' limits.
inline constexpr size_t kMaxTerminationMessage = 4096;
inline constexpr size_t kMaxFallbackMessage = 2048;

// The first kMaxTerminationMessage bytes of a file that a rank has written; ""
// if it has written none. Anything but a regular file counts as none.
std::string ReadTerminationMessage(const std::string& path);

// The last whole lines of a log, kMaxFallbackMessage bytes and 80 lines at
// most: terminationMessagePolicy FallbackToLogsOnError.
std::string TailOfLog(const std::string& path);

}  // namespace disttrain
