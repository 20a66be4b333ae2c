// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace disttrain {

// Runs `run(0)` ... `run(count - 1)` in batches of 1, 2, 4, ... 64, and stops
// after the first batch with an error, which it returns: a quota that is used
// up costs one refused call, not thousands.
//
// Threads: up to 8 of its own; `run` must be thread-safe.
absl::Status SlowStart(size_t count,
                       const std::function<absl::Status(size_t)>& run);

}  // namespace disttrain
