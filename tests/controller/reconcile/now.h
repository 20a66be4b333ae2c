// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace disttrain {

// What the clock shows in the tests of decisions: 2026-01-05 10:00:00 UTC.
const absl::Time kNow = absl::FromUnixSeconds(1767607200);

}  // namespace disttrain
